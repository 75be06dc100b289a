// Package measure is what every benchmark needs: latencies and their percentiles, medians with their spread, the machine and the
// build, what a process uses, fresh stores. It does not know what is measured.
package measure
