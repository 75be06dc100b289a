package condition

import (
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// evidenceOf reads signals as `key name source_type identity`, one after another; each has an id of its own.
func evidenceOf(signals ...string) []Evidence {
	var all []Evidence
	for i, signal := range signals {
		parts := append(strings.Split(signal, " "), "", "", "")
		all = append(all, Evidence{WaitpointKey: parts[0], Name: parts[1], SourceType: parts[2], SourceIdentity: parts[3], SignalID: base.UUID{15: byte(i + 1)}})
	}
	return all
}

const (
	singleA      = `{"type":"single","waitpoint_key":"a"}`
	singleB      = `{"type":"single","waitpoint_key":"b"}`
	singleNamed  = `{"type":"single","waitpoint_key":"a","name":"go"}`
	operatorOnly = `{"type":"operator_only"}`
	timeoutOnly  = `{"type":"timeout_only"}`
)

func countOf(n int, kind, rest string) string {
	return fmt.Sprintf(`{"type":"count","n":%d,"count_kind":%q,%s}`, n, kind, rest)
}

func bothOf(members ...string) string {
	return `{"type":"all_of","members":[` + strings.Join(members, ",") + `]}`
}

// together is a condition with these members.
func together(members ...string) string {
	return `{"type":"any_of","members":[` + strings.Join(members, ",") + `]}`
}

// parsed reads a condition as a caller writes it.
func parsed(t tester, text string) *Condition {
	t.Helper()
	return must[*Condition](t)(Parse([]byte(text)))
}
