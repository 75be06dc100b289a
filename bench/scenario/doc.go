// Package scenario holds the scenarios of `flowfabric bench`: how FlowFabric does on a store, through its public Client and Worker
// with default settings, each sample on a fresh store and with a check of its own result. Nothing here sees the inside of the
// engine: a private path would measure what no user gets.
package scenario
