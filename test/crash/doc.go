// Package crash kills real processes in the middle of their work and checks what is left: nothing acknowledged is lost, nothing
// is done twice inside the engine, and everything ends. It sees the public API alone.
package crash
