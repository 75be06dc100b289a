// Package engine is the shell around the rules: it gathers the commands of many callers into few transactions, runs each
// through package core, writes the result through a store, and wakes whoever waits for it. It turns the timers, follows the
// event log and keeps finished work no longer than asked.
//
// What may happen to an execution is decided in core, how rows are kept in a store; the engine knows neither SQL nor HTTP.
package engine
