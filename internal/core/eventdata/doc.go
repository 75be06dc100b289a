// Package eventdata holds the data of events: a builder of fields, the compact form in which stores keep them, and the JSON that readers see.
//
// It knows the names of fields, and not which event has which. It imports base and the standard library alone.
package eventdata
