// Figures of several panels scroll on a phone: see manual.css.
document.addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll("img.sphx-glr-single-img")) {
    const wrap = () => {
      if (image.naturalWidth <= 2 * image.naturalHeight) return;
      const frame = document.createElement("div");
      frame.className = "wide-figure";
      image.replaceWith(frame);
      frame.append(image);
    };
    if (image.complete) wrap();
    else image.addEventListener("load", wrap, { once: true });
  }
});
