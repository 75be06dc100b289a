package api

import (
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// CodeInfo describes a code: its class, its HTTP status, and whether a repeat may succeed.
type CodeInfo struct {
	Code      string
	Class     string
	Status    int  // of HTTP; 0: it occurs only at start
	Retryable bool // the same call, unchanged, may succeed later
	// Meaning and Advice are for people: one sentence each, "" for codes that are not in use yet.
	Meaning, Advice string
}

// Codes lists every code that an Error may have, sorted by name.
func Codes() []CodeInfo {
	var all []CodeInfo
	for code, info := range base.Codes() {
		text := code.Text()
		all = append(all, CodeInfo{
			Code: string(code), Class: info.Class, Status: info.HTTP, Retryable: info.Retryable, Meaning: text.Meaning, Advice: text.Advice,
		})
	}
	slices.SortFunc(all, func(a, b CodeInfo) int { return strings.Compare(a.Code, b.Code) })
	return all
}
