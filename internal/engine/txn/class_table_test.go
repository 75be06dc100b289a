package txn_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	admission "github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

func TestS36_a_look_at_a_quota_parses_the_needs_of_those_alone_who_name_it(t *testing.T) {
	t.Parallel()
	var classes []*core.Class
	for i := range int32(100) {
		needs := core.Needs{Quotas: []core.QuotaUse{{Quota: "common", Key: fmt.Sprint("user", i)}}}
		if i%10 == 0 {
			needs.Quotas = append(needs.Quotas, core.QuotaUse{Quota: "rare"})
		}
		classes = append(classes, &core.Class{ID: i + 1, Lane: "l", Kind: "k", Needs: needs.Text()})
	}
	found, parsed := classesOf(classes, "rare")
	if len(found) != 10 || parsed != 10 {
		t.Errorf("%d classes, %d parsed", len(found), parsed)
	}
	found, parsed = classesOf(classes, "rar")
	if len(found) != 0 || parsed != 10 {
		t.Errorf("of no such quota: %d classes, %d parsed", len(found), parsed)
	}
	if found, _ = classesOf(classes, "common"); len(found) != 100 {
		t.Errorf("of a common one: %d classes", len(found))
	}
}

// classesOf returns the classes that name a quota, and how many needs were parsed to find them.
func classesOf(classes []*core.Class, quota string) (found []*core.Class, parsed int) {
	d, count := txn.DictionaryOf(classes)
	found = admission.ClassesOf(d, quota, func(*core.Class) bool { return true })
	return found, count()
}

func TestS36_needs_that_are_asked_for_again_and_again_are_parsed_once_whatever_passes_by(t *testing.T) {
	t.Parallel()
	needs := txn.NeedsOf("unreadable")
	first := needs(0)
	for class := range int32(5 * txn.NeedsKept) {
		needs(class + 1)
		if class%100 == 0 && needs(0) != first {
			t.Fatalf("parsed again after %d others", class)
		}
	}
}
