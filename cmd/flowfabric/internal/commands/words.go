package commands

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/internal/hint"
)

// words are the flags of a command, for arguments as HTTP names them.
type words struct{ cmd *cobra.Command }

// Field returns the flag or the argument for a place in a request: --namespace for header.FlowFabric-Namespace, --quota for /quotas/0/quota, KIND for
// /kind.
func (w words) Field(field string) string {
	if header, found := strings.CutPrefix(field, "header."); found {
		if flag := hint.Flag(header); flag != "" {
			return flag
		}
		if header == "Authorization" {
			return "FF_API_KEY"
		}
		return field
	}
	path, isPointer := strings.CutPrefix(strings.TrimPrefix(field, "query."), "/")
	if path == field && !isPointer && strings.ContainsAny(field, " -.") {
		return field // it is one of the command line
	}
	parts := strings.Split(path, "/")
	for _, given := range []bool{true, false} {
		for i := len(parts) - 1; i >= 0; i-- {
			if flag := w.flag(parts[i], given); flag != "" {
				return flag
			}
		}
	}
	if argument := strings.ToUpper(parts[0]); len(parts) == 1 && w.takes(argument) {
		return argument
	}
	return field
}

// takes reports whether the usage of the command names such an argument, as in submit KIND.
func (w words) takes(argument string) bool {
	for _, word := range strings.Fields(w.cmd.Use) {
		if strings.Trim(word, "[].") == argument {
			return true
		}
	}
	return false
}

// Flag returns the flag for an argument.
func (w words) Flag(argument string) string {
	if flag := w.flag(argument, true); flag != "" {
		return flag
	}
	return w.flag(argument, false)
}

// flag returns the flag for an argument, such as --waitpoint for waitpoint_id, --expires for expires_in_ms and --role for roles; only one
// that was given if given is set.
func (w words) flag(argument string, given bool) string {
	name := strings.ReplaceAll(argument, "_", "-")
	for _, rest := range []string{"", "-id", "-in-ms", "-ms", "s"} {
		flag, found := strings.CutSuffix(name, rest)
		if !found || flag == "" {
			continue
		}
		if known := w.cmd.Flag(flag); known != nil && (known.Changed || !given) {
			return "--" + flag
		}
	}
	return ""
}
