// Package model holds the model test (LI18): the same random commands go through the pure rules on an in-memory map and through
// the engine on every store, and answers, records, lease histories, steps and events are compared after every command. It
// contains tests alone, and sees the engine from outside.
package model
