package core

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestU101_a_namespace_states_all_its_settings(t *testing.T) {
	t.Parallel()
	n, changed := PutNamespace(1000, nil, "a", NamespaceSettings{MaxPayloadBytes: 10})
	if !changed || n.Revision != 1 || n.CreatedAt != 1000 {
		t.Errorf("new: %+v", n)
	}
	if _, changed = PutNamespace(2000, &n, "a", n.NamespaceSettings); changed {
		t.Error("the same settings change something")
	}
	n, changed = PutNamespace(2000, &n, "a", NamespaceSettings{Description: "x"})
	if !changed || n.Revision != 2 || n.CreatedAt != 1000 || n.MaxPayloadBytes != 0 {
		t.Errorf("changed: %+v", n)
	}
	for field, s := range map[string]NamespaceSettings{
		"description":             {Description: strings.Repeat("x", 1025)},
		"max_submit_per_second":   {MaxSubmitPerSecond: -1},
		"max_requests_per_second": {MaxRequestsPerSecond: -1},
		"max_payload_bytes":       {MaxPayloadBytes: base.MaxPayloadSetting + 1},
	} {
		expect(t, s.Check(), base.CodeInvalidArgument, field)
	}
	expect(t, NamespaceSettings{}.CheckInput(1<<40), "", "")
	expect(t, NamespaceSettings{MaxPayloadBytes: 3}.CheckInput(3), "", "")
	expect(t, NamespaceSettings{MaxPayloadBytes: 3}.CheckInput(4), base.CodePayloadTooLarge, "input")
}
