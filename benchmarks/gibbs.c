/* The Gibbs sweep of nearfield written in C: the yardstick of benchmarks/gibbs.py.
   The same algorithm, number for number: random bits by position, bounds before exp, and the
   support of classes 1..G-1 kept up to date. */
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

static inline double exp_bound(const double *restrict bounds, double x) {
    double clipped = x < -32.0 ? -32.0 : (x > 32.0 ? 32.0 : x);
    return bounds[(int64_t)((clipped + 32.0) * 32.0)];
}

static inline void add_row(const double *restrict row, double sign, double *restrict support,
                           int64_t n) {
    for (int64_t j = 0; j < n; j++) support[j] += sign * row[j];
}

static int64_t draw_class(double *restrict weights, int64_t n_classes, int64_t current,
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

void gibbs_sweeps(const double *restrict coupling, const double *restrict total_coupling,
                  const double *restrict external_field, const double *restrict bounds,
                  double beta, int64_t *restrict labels, double *restrict support, int64_t n,
                  int64_t n_classes, uint64_t key, int64_t n_sweeps) {
    double *restrict log_weights = malloc(n_classes * sizeof(double));
    for (int64_t sweep = 0; sweep < n_sweeps; sweep++)
        for (int64_t i = 0; i < n; i++) {
            double uniform = uniform_at(key, (uint64_t)(sweep * n + i));
            int64_t current = labels[i];
            double left = total_coupling[i];
            for (int64_t g = 1; g < n_classes; g++) {
                double class_support = support[(g - 1) * n + i];
                log_weights[g] = external_field[g] + beta * class_support;
                left -= class_support;
            }
            log_weights[0] = external_field[0] + beta * left;
            double bound = 1.0;
            for (int64_t g = 0; g < n_classes; g++)
                if (g != current) bound += exp_bound(bounds, log_weights[g] - log_weights[current]);
            if (uniform * bound < 1.0) continue;
            int64_t new = draw_class(log_weights, n_classes, current, uniform);
            if (new == current) continue;
            labels[i] = new;
            if (current > 0) add_row(coupling + i * n, -1.0, support + (current - 1) * n, n);
            if (new > 0) add_row(coupling + i * n, 1.0, support + (new - 1) * n, n);
        }
    free(log_weights);
}
