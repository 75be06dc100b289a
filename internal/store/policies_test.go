package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestL11_a_policy_that_was_read_before_is_the_same(t *testing.T) {
	t.Parallel()
	var p Policies
	text := []byte(`{"max_reclaim_count":7}`)
	first, err := p.decode(text)
	if err != nil || first.MaxReclaims != 7 {
		t.Fatal(first, err)
	}
	copy(text, strings.Repeat(" ", len(text))) // the text is the store's own memory
	again, err := p.decode([]byte(`{"max_reclaim_count":7}`))
	if err != nil || again != first {
		t.Fatalf("%p, then %p, %v", first, again, err)
	}
	other, err := p.decode([]byte(`{"max_reclaim_count":8}`))
	if err != nil || other.MaxReclaims != 8 {
		t.Fatal(other, err)
	}
}

func TestL11_a_policy_that_cannot_be_read_never_can(t *testing.T) {
	t.Parallel()
	var p Policies
	for range 2 {
		if _, err := p.decode([]byte(`{"missing":1}`)); base.CodeOf(err) != base.CodeCorruption {
			t.Fatal(err)
		}
	}
}

func TestL11_policies_that_are_remembered_are_bounded(t *testing.T) {
	t.Parallel()
	var p Policies
	for i := range policiesKept + 10 {
		policy, err := p.decode(fmt.Appendf(nil, `{"fairness_key":"%d"}`, i))
		if err != nil || policy.FairnessKey != fmt.Sprint(i) {
			t.Fatal(policy, err)
		}
	}
	if len(p.known) > policiesKept {
		t.Errorf("%d are remembered", len(p.known))
	}
	long := fmt.Appendf(nil, `{"fairness_key":"long"%s}`, strings.Repeat(" ", longestPolicy))
	if policy, err := p.decode(long); err != nil || policy.FairnessKey != "long" || p.known[string(long)] != nil {
		t.Error("a long one is read and not kept", err)
	}
}
