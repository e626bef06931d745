(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("payload").textContent);
  const map = document.getElementById("map");
  const detail = document.getElementById("detail");
  const spectra = document.getElementById("spectra");
  const svgSpace = "http://www.w3.org/2000/svg";
  let active = -1;

  // Text goes in as text, whatever it contains.
  function element(tag, text, parent) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  function className(g) {
    return g < 0 ? "unknown class" : data.classes[g];
  }

  function predicted(i) {
    const row = data.probabilities[i];
    return row.indexOf(Math.max(...row));
  }

  function ranked(i) {
    return data.probabilities[i].map((p, g) => [p, g]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  }

  function pointOf(i) {
    return document.getElementById("p" + i);
  }

  function describe(i) {
    const lines = [data.ids[i] + " (" + className(data.labels[i]) + ")"];
    if (i < data.nSamples) {
      for (const [p, g] of ranked(i).slice(0, 3)) lines.push(data.classes[g] + ": " + p.toFixed(3));
    } else {
      lines.push("training sample");
    }
    return lines.join("\n");
  }

  const tip = element("div", "", document.body);
  tip.id = "tip";
  tip.hidden = true;

  function showTip(i, x, y) {
    tip.textContent = describe(i);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    tip.style.left = Math.max(4, Math.min(x + 14, width - box.width - 4)) + "px";
    tip.style.top = Math.max(4, Math.min(y + 14, window.innerHeight - box.height - 4)) + "px";
  }

  function bars(i, parent) {
    for (const [p, g] of ranked(i).slice(0, 8)) {
      const bar = element("div", undefined, parent);
      bar.className = "bar";
      element("span", data.classes[g], bar);
      const filled = element("i", undefined, bar);
      filled.style.width = 100 * p + "%";
      filled.style.background = data.colors[g % data.colors.length];
      element("span", p.toFixed(3), bar);
    }
  }

  function neighborList(i, parent) {
    if (!data.neighbors) return;
    element("h3", "Training samples behind the prediction", parent);
    const list = element("ol", undefined, parent);
    for (const [j, influence] of data.neighbors[i]) {
      const item = element("li", undefined, list);
      const button = element("button", data.ids[j], item);
      button.type = "button";
      button.addEventListener("click", () => select(j, true));
      const sign = influence < 0 ? "\u2212" : "+";
      const size = Math.abs(influence).toFixed(2);
      item.append(" " + className(data.labels[j]) + ", " + sign + size);
    }
    const words = "The number is what the sample adds to the log odds of its class.";
    element("p", words, parent).className = "muted";
  }

  function showDetail(i) {
    detail.replaceChildren();
    element("h3", data.ids[i], detail);
    const isSample = i < data.nSamples;
    const own = className(data.labels[i]);
    if (!isSample) {
      element("p", "Training sample of class " + own + ".", detail);
      return;
    }
    const known = data.labels[i] < 0 ? "" : "Class: " + own + ". ";
    element("p", known + "Predicted: " + data.classes[predicted(i)] + ".", detail);
    bars(i, detail);
    if (data.pValues) {
      const largest = Math.max(...data.pValues[i]);
      const text = "Largest p-value of membership in a class: " + largest.toFixed(3) +
        (largest <= data.level ? " (refused at level " + data.level + ")." : ".");
      element("p", text, detail);
    }
    neighborList(i, detail);
  }

  function link(i, j, parent) {
    const place = (k) => pointOf(k).getAttribute("transform").match(/-?[\d.]+/g).join(" ");
    const line = document.createElementNS(svgSpace, "path");
    line.setAttribute("d", "M" + place(i) + "L" + place(j));
    parent.appendChild(line);
  }

  function markOnMap(i) {
    const links = map.querySelector(".links");
    links.replaceChildren();
    map.querySelectorAll(".active, .near").forEach((p) => p.classList.remove("active", "near"));
    pointOf(i).classList.add("active");
    for (const [j] of (i < data.nSamples && data.neighbors ? data.neighbors[i] : [])) {
      pointOf(j).classList.add("near");
      link(i, j, links);
    }
  }

  function drawSpectrum(i) {
    const group = spectra.querySelector(".selected");
    group.replaceChildren();
    if (!data.spectra || i >= data.nSamples) return;
    const [left, top, width, height, low, high, bottom, ceiling] =
      spectra.dataset.scale.split(",").map(Number);
    const points = data.spectra[i].map((value, k) =>
      (left + width * (data.axis[k] - low) / (high - low)).toFixed(1) + "," +
      (top + height * (ceiling - value) / (ceiling - bottom)).toFixed(1));
    const line = document.createElementNS(svgSpace, "polyline");
    line.setAttribute("points", points.join(" "));
    line.setAttribute("class", "line");
    line.setAttribute("stroke", "#000");
    group.appendChild(line);
    document.getElementById("spectrum-name").textContent = "In black: " + data.ids[i] + ".";
  }

  function select(i, keepsFocus) {
    active = i;
    showDetail(i);
    if (map) markOnMap(i);
    if (spectra) drawSpectrum(i);
    const again = keepsFocus && detail.querySelector("button");
    if (again) again.focus();
  }

  function watchMap() {
    const indexOf = (target) => {
      const point = target.closest(".point");
      return point ? Number(point.id.slice(1)) : -1;
    };
    map.addEventListener("mousemove", (event) => {
      const i = indexOf(event.target);
      if (i < 0) tip.hidden = true;
      else showTip(i, event.clientX, event.clientY);
    });
    map.addEventListener("mouseleave", () => { tip.hidden = true; });
    map.addEventListener("click", (event) => {
      const i = indexOf(event.target);
      if (i >= 0) select(i, false);
    });
    map.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        const n = data.ids.length;
        select(active < 0 ? 0 : (active + step + n) % n, false);
      } else if (event.key === "Enter" && active >= 0) {
        event.preventDefault();
        const button = detail.querySelector("button");
        if (button) button.focus();
      }
    });
    document.querySelectorAll("input[name=shade]").forEach((choice) => {
      choice.addEventListener("change", () => {
        map.setAttribute("class", choice.value);
        document.querySelectorAll("[data-shade]").forEach((part) => {
          part.hidden = part.dataset.shade !== choice.value;
        });
      });
    });
    for (let i = 0; i < data.nSamples; i++) {
      const isWrong = data.labels[i] >= 0 && predicted(i) !== data.labels[i];
      if (isWrong) pointOf(i).classList.add("wrong");
    }
  }

  function cellValue(row, column) {
    const cell = row.cells[column];
    const value = cell.dataset.value;
    return value === undefined ? cell.textContent.toLowerCase() : Number(value);
  }

  function sortTable(table, column, header) {
    const isUp = header.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("thead th").forEach((th) => th.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", isUp ? "ascending" : "descending");
    const body = table.tBodies[0];
    const compare = (a, b) =>
      typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
    const rows = Array.from(body.rows).map((row) => [cellValue(row, column), row]);
    rows.sort((a, b) => (isUp ? 1 : -1) * compare(a[0], b[0]));
    body.append(...rows.map((pair) => pair[1]));
  }

  function watchTables() {
    document.querySelectorAll("table.sortable thead th").forEach((header) => {
      const button = element("button", header.textContent);
      button.type = "button";
      header.replaceChildren(button);
      const table = header.closest("table");
      button.addEventListener("click", () => sortTable(table, header.cellIndex, header));
    });
    const text = document.getElementById("filter-text");
    const kind = document.getElementById("filter-kind");
    if (!text) return;
    const rows = document.querySelectorAll("#samples tbody tr");
    const count = document.getElementById("filter-count");
    const filter = () => {
      const wanted = text.value.toLowerCase();
      let n = 0;
      rows.forEach((row) => {
        const isShown = row.textContent.toLowerCase().includes(wanted) &&
          (!kind.value || row.classList.contains(kind.value));
        row.hidden = !isShown;
        n += isShown;
      });
      count.textContent = n + " of " + rows.length + " shown";
    };
    text.addEventListener("input", filter);
    kind.addEventListener("change", filter);
    filter();
    document.querySelectorAll("button.sample").forEach((button) => {
      button.addEventListener("click", () => {
        select(Number(button.dataset.point), false);
        detail.scrollIntoView({ block: "nearest" });
      });
    });
  }

  if (map) watchMap();
  watchTables();
})();
