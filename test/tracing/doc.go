// Package tracing follows traces through submits, claims, handlers, steps, commands and commits, as a collector would see them (U215,
// U216): with the engine in the process of the program and over HTTP, on every store.
package tracing
