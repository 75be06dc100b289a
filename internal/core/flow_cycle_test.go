package core

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/testseed"
)

// reaches reports whether a path of at least one edge leads from one name to another, by widening the set of what is reached.
func reaches(edges [][2]string, from, to string) bool {
	reached := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, e := range edges {
			if (e[0] == from || reached[e[0]]) && !reached[e[1]] {
				reached[e[1]], grown = true, true
			}
		}
	}
	return reached[to]
}

func TestF19_F20_a_cycle_is_found_if_and_only_if_there_is_one(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g"})
		edges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]string { return [2]string{name.Draw(t, "from"), name.Draw(t, "to")} }), 0, 12).Draw(t, "edges")
		there := slices.ContainsFunc(edges, func(e [2]string) bool { return reaches(edges, e[0], e[0]) })
		cycle := FindCycle(edges)
		if there != (cycle != nil) {
			t.Fatalf("%v: a cycle %v, found %v", edges, there, cycle)
		}
		for i := range max(len(cycle)-1, 0) {
			if !slices.Contains(edges, [2]string{cycle[i], cycle[i+1]}) || slices.Contains(cycle[:i], cycle[i]) {
				t.Fatalf("%v is no cycle of %v", cycle, edges)
			}
		}
		if there && (len(cycle) < 2 || cycle[0] != cycle[len(cycle)-1]) {
			t.Fatalf("%v does not come back", cycle)
		}
		if again := FindCycle(edges); !slices.Equal(cycle, again) {
			t.Fatalf("%v and then %v", cycle, again)
		}
	})
}

func chain(n int) [][2]string {
	edges := make([][2]string, n-1)
	for i := range edges {
		edges[i] = [2]string{fmt.Sprint("n", i), fmt.Sprint("n", i+1)}
	}
	return edges
}

func TestF20_a_cycle_through_the_last_edge_of_10000_nodes_is_found_and_a_chain_of_100000_is_none(t *testing.T) {
	t.Parallel()
	edges := chain(10_000)
	if cycle := FindCycle(edges); cycle != nil {
		t.Fatalf("a chain has a cycle of %d names", len(cycle))
	}
	cycle := FindCycle(append(edges, [2]string{"n9999", "n0"}))
	if len(cycle) != 10_001 || cycle[0] != "n0" || cycle[9_999] != "n9999" || cycle[10_000] != "n0" {
		t.Fatalf("%d names", len(cycle))
	}
	if cycle := FindCycle(chain(MaxFlowMembers)); cycle != nil {
		t.Fatalf("a chain has a cycle of %d names", len(cycle))
	}
}

func TestU89_the_order_of_a_dry_run_follows_every_edge_and_else_the_order_of_submit(t *testing.T) {
	t.Parallel()
	names := []string{"deploy", "unit", "browser", "build", "alarm"}
	edges := [][2]string{{"build", "unit"}, {"build", "browser"}, {"unit", "deploy"}, {"browser", "deploy"}}
	if order := TopologicalOrder(names, edges); !slices.Equal(order, []string{"build", "unit", "browser", "deploy", "alarm"}) {
		t.Errorf("%v", order)
	}
	if order := TopologicalOrder(names, nil); !slices.Equal(order, names) {
		t.Errorf("%v", order)
	}
	testseed.Check(t, func(t *rapid.T) {
		names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f", "g"}).Draw(t, "names")
		name := rapid.SampledFrom(names)
		edges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]string {
			from, to := name.Draw(t, "from"), name.Draw(t, "to")
			return [2]string{min(from, to), max(from, to)}
		}).Filter(func(e [2]string) bool { return e[0] != e[1] }), 0, 12).Draw(t, "edges")
		// The oracle takes, again and again, the first name that waits for none of those left.
		var want []string
		for left := slices.Clone(names); len(left) > 0; {
			i := slices.IndexFunc(left, func(name string) bool {
				return !slices.ContainsFunc(edges, func(e [2]string) bool { return e[1] == name && slices.Contains(left, e[0]) })
			})
			want = append(want, left[i])
			left = slices.Delete(left, i, i+1)
		}
		if order := TopologicalOrder(names, edges); !slices.Equal(order, want) {
			t.Fatalf("%v, want %v", order, want)
		}
	})
}
