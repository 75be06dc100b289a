// Package secrets holds tests about what must stay secret: tokens of waitpoints, addresses of links, signing keys. Everything that can
// issue or use one is run, and everything that a program leaves behind is searched for it. It contains tests alone.
package secrets
