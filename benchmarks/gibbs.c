/* The Gibbs sweeps of nearfield written in C: the yardstick of benchmarks/gibbs.py.
   The same algorithm, number for number: random bits by position, bounds before exp, and the log
   odds (two classes) or log weights (more) of all sites kept up to date. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static inline double uniform_at(uint64_t key, uint64_t position) {
    uint64_t bits = key + position * 0x9E3779B97F4A7C15ULL;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBULL;
    bits ^= bits >> 31;
    return ((double)(int64_t)(bits >> 11) + 0.5) * 0x1p-53;
}

void two_class_sweeps(const double *restrict coupling, double *restrict log_odds,
                      int64_t *restrict labels, const double *restrict logits, int64_t n_cells,
                      int64_t n, uint64_t key, int64_t n_sweeps) {
    double *restrict uniforms = malloc(n * sizeof(double));
    double *restrict lower = malloc(n * sizeof(double));
    double *restrict upper = malloc(n * sizeof(double));
    for (int64_t sweep = 0; sweep < n_sweeps; sweep++) {
        for (int64_t i = 0; i < n; i++) {
            double uniform = uniform_at(key, (uint64_t)(sweep * n + i));
            int64_t cell = (int64_t)(uniform * n_cells);
            uniforms[i] = uniform;
            lower[i] = logits[cell];
            upper[i] = logits[cell + 1];
        }
        for (int64_t i = 0; i < n; i++) {
            double odds = log_odds[i];
            int64_t new = odds > lower[i];
            if ((odds > lower[i]) != (odds >= upper[i]))
                new = uniforms[i] * (1.0 + exp(-odds < 700.0 ? -odds : 700.0)) < 1.0;
            if (new != labels[i]) {
                labels[i] = new;
                double sign = 2.0 * new - 1.0;
                for (int64_t j = 0; j < n; j++) log_odds[j] += sign * coupling[i * n + j];
            }
        }
    }
    free(uniforms), free(lower), free(upper);
}

static int64_t draw_exactly(double *restrict weights, int64_t n_classes, int64_t current,
                            double uniform) {
    double largest = weights[0], total = 0.0;
    for (int64_t g = 1; g < n_classes; g++) largest = weights[g] > largest ? weights[g] : largest;
    for (int64_t g = 0; g < n_classes; g++) total += weights[g] = exp(weights[g] - largest);
    double left = uniform * total;
    int64_t n_passed = 0, g = current;
    for (int64_t k = 0; k < n_classes - 1; k++) {
        left -= weights[g];
        n_passed += left >= 0.0;
        g = g + 1 < n_classes ? g + 1 : 0;
    }
    return current + n_passed < n_classes ? current + n_passed : current + n_passed - n_classes;
}

static inline int64_t draw_class(const double *restrict log_weights, int64_t n, int64_t n_classes,
                                 double *restrict cumulative, const double *restrict exps,
                                 double largest, int64_t current, double uniform) {
    double total = 0.0;
    for (int64_t g = 0; g < n_classes; g++) {
        double position = (log_weights[g * n] - largest) * 32.0;
        position = (position > -1024.0 ? position : -1024.0) + 1024.0;
        int64_t entry = (int64_t)position;
        double rest = position - entry;
        total += exps[entry] * (1.0 + rest * (1.0 / 32.0 + 0.5 / 1024.0 * rest));
        cumulative[g] = total;
    }
    double place = uniform * total + (current > 0 ? cumulative[current - 1] : 0.0);
    place = place >= total ? place - total : place;
    double low = place - 2e-5 * total, high = place + 2e-5 * total;
    int64_t n_passed = 0, n_perhaps = 0;
    for (int64_t g = 0; g < n_classes - 1; g++) {
        n_passed += cumulative[g] <= low;
        n_perhaps += cumulative[g] <= high;
    }
    if (n_passed == n_perhaps && low >= 0.0 && high <= total) return n_passed;
    for (int64_t g = 0; g < n_classes; g++) cumulative[g] = log_weights[g * n];
    return draw_exactly(cumulative, n_classes, current, uniform);
}

void class_sweeps(const double *restrict coupling, double *restrict log_weights,
                  int64_t *restrict labels, const double *restrict logits, int64_t n_cells,
                  const double *restrict exps, int64_t n, int64_t n_classes, uint64_t key,
                  int64_t n_sweeps) {
    double *restrict uniforms = malloc(n * sizeof(double));
    double *restrict thresholds = malloc(n * sizeof(double));
    double *restrict cumulative = malloc(n_classes * sizeof(double));
    double log_n_others = log(n_classes - 1.0);
    for (int64_t sweep = 0; sweep < n_sweeps; sweep++) {
        for (int64_t i = 0; i < n; i++) {
            double uniform = uniform_at(key, (uint64_t)(sweep * n + i));
            uniforms[i] = uniform;
            thresholds[i] = logits[(int64_t)(uniform * n_cells) + 1] + log_n_others;
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t current = labels[i];
            double largest = log_weights[i], second = -INFINITY;
            for (int64_t g = 1; g < n_classes; g++) {
                double value = log_weights[g * n + i];
                double smaller = largest < value ? largest : value;
                second = second > smaller ? second : smaller;
                largest = largest > value ? largest : value;
            }
            double own = log_weights[current * n + i];
            if (own - (own == largest ? second : largest) > thresholds[i]) continue;
            int64_t new = draw_class(log_weights + i, n, n_classes, cumulative, exps, largest,
                                     current, uniforms[i]);
            if (new == current) continue;
            labels[i] = new;
            double *restrict old_row = log_weights + current * n;
            double *restrict new_row = log_weights + new * n;
            for (int64_t j = 0; j < n; j++) {
                old_row[j] -= coupling[i * n + j];
                new_row[j] += coupling[i * n + j];
            }
        }
    }
    free(uniforms), free(thresholds), free(cumulative);
}
