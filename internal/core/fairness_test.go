package core

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/testseed"
)

func pick(t interface{ Fatalf(string, ...any) }, turns *Turns, keys []string, weight func(string) int) string {
	round := turns.Round("lane", keys, weight)
	key, ok := round.Next()
	if !ok {
		t.Fatalf("no turn among %v", keys)
	}
	round.Took()
	return key
}

func evenly(string) int { return 1 }

func TestS24_keys_of_equal_weight_take_turns_in_order_of_their_text(t *testing.T) {
	t.Parallel()
	var turns Turns
	got := ""
	for range 6 {
		got += pick(t, &turns, []string{"b", "c", "a"}, evenly)
	}
	if got != "abcabc" {
		t.Errorf("picked %s", got)
	}
}

func TestSC9_two_keys_with_weights_3_and_1_share_3_to_1(t *testing.T) {
	t.Parallel()
	weight := func(key string) int { return map[string]int{"big": 3, "small": 1}[key] }
	var turns Turns
	picks := map[string]int{}
	for n := 1; n <= 4000; n++ {
		picks[pick(t, &turns, []string{"big", "small"}, weight)]++
		if d := float64(picks["big"])/3 - float64(picks["small"]); math.Abs(d) > 1+1.0/3 {
			t.Fatalf("after %d picks %v", n, picks)
		}
	}
	if picks["big"] != 3000 || picks["small"] != 1000 {
		t.Errorf("%v", picks)
	}
}

func TestS24_a_key_that_was_idle_has_saved_no_turns(t *testing.T) {
	t.Parallel()
	var turns Turns
	both := []string{"busy", "idle"}
	pick(t, &turns, both, evenly)
	pick(t, &turns, both, evenly)
	turns.Idle("lane", "idle")
	for range 1000 {
		pick(t, &turns, []string{"busy"}, evenly)
	}
	picks := map[string]int{}
	for range 100 {
		picks[pick(t, &turns, both, evenly)]++
	}
	if picks["idle"] < 49 || picks["idle"] > 51 {
		t.Errorf("after its pause: %v", picks)
	}
}

func TestS24_keys_that_return_to_an_empty_lane_together_share_from_then_on(t *testing.T) {
	t.Parallel()
	var turns Turns
	for range 500 {
		pick(t, &turns, []string{"a"}, evenly)
	}
	turns.Idle("lane", "a")
	picks := map[string]int{}
	for range 100 {
		picks[pick(t, &turns, []string{"a", "new"}, evenly)]++
	}
	if picks["new"] < 49 || picks["new"] > 51 {
		t.Errorf("%v", picks)
	}
}

func TestS24_a_key_that_a_caller_cannot_serve_keeps_its_turn_for_one_that_can(t *testing.T) {
	t.Parallel()
	var turns Turns
	picks := map[string]int{}
	for range 50 {
		picks[pick(t, &turns, []string{"a"}, evenly)]++      // a caller that serves only a
		picks[pick(t, &turns, []string{"a", "z"}, evenly)]++ // one that serves both
	}
	if picks["z"] < 49 {
		t.Errorf("%v: z is behind and should have had every turn of the second caller", picks)
	}
}

func TestS24_a_change_of_weight_acts_from_then_on(t *testing.T) {
	t.Parallel()
	var turns Turns
	for range 100 {
		pick(t, &turns, []string{"a", "b"}, evenly)
	}
	heavy := func(key string) int { return map[string]int{"a": 4, "b": 1}[key] }
	picks := map[string]int{}
	for range 100 {
		picks[pick(t, &turns, []string{"a", "b"}, heavy)]++
	}
	if picks["a"] < 79 || picks["a"] > 81 {
		t.Errorf("%v", picks)
	}
}

func TestS24_a_round_passes_over_a_key_without_further_candidates(t *testing.T) {
	t.Parallel()
	var turns Turns
	round := turns.Round("lane", []string{"a", "b"}, func(string) int { return 0 })
	if key, _ := round.Next(); key != "a" {
		t.Fatalf("first %q", key)
	}
	round.Took()
	if key, _ := round.Next(); key != "b" {
		t.Fatalf("second %q", key)
	}
	round.Drop()
	if key, _ := round.Next(); key != "a" {
		t.Fatalf("third %q", key)
	}
	round.Drop()
	if _, ok := round.Next(); ok {
		t.Error("a key is left")
	}
}

func TestS26_the_key_depends_on_the_lanes_setting(t *testing.T) {
	t.Parallel()
	class := &Class{Namespace: "acme", FairnessKey: "vip"}
	plain := &Class{Namespace: "acme"}
	for _, c := range []struct {
		setting string
		class   *Class
		want    string
	}{
		{"", class, "acme"},
		{FairnessAuto, class, "acme"},
		{FairnessOff, class, ""},
		{FairnessNamespace, class, "acme"},
		{FairnessByKey, class, "vip"},
		{FairnessByKey, plain, "acme"},
	} {
		if got := FairnessKeyOf(c.setting, c.class); got != c.want {
			t.Errorf("%q: %q, want %q", c.setting, got, c.want)
		}
	}
}

// SI4: the bound of S25 and its bound on waiting, for random weights and for other keys that come and go.
func TestS25_SI4_the_shares_of_keys_that_always_have_candidates_stay_within_their_bound(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		weights := map[string]int{}
		var steady, guests []string
		for i := range rapid.IntRange(2, 6).Draw(t, "steady") {
			steady = append(steady, fmt.Sprint("s", i))
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "guests") {
			guests = append(guests, fmt.Sprint("g", i))
		}
		for _, key := range append(append([]string{}, steady...), guests...) {
			weights[key] = rapid.IntRange(1, 1000).Draw(t, "weight of "+key)
		}
		weight := func(key string) int { return weights[key] }
		longest := map[string]int{}
		for _, i := range steady {
			for j, w := range weights {
				if i != j {
					longest[i] += (w+weights[i]-1)/weights[i] + 1
				}
			}
		}
		var turns Turns
		picks, waiting, here := map[string]int{}, map[string]int{}, map[string]bool{}
		for range rapid.IntRange(1, 300).Draw(t, "picks") {
			keys := append([]string{}, steady...)
			for _, guest := range guests {
				comes := rapid.Bool().Draw(t, guest)
				if comes {
					keys = append(keys, guest)
				} else if here[guest] {
					turns.Idle("lane", guest)
				}
				here[guest] = comes
			}
			taken := pick(t, &turns, keys, weight)
			picks[taken]++
			for _, i := range steady {
				waiting[i]++
				if i == taken {
					waiting[i] = 0
				}
				if len(guests) == 0 && waiting[i] > longest[i] {
					t.Fatalf("%s waited for %d picks, at most %d are allowed", i, waiting[i], longest[i])
				}
				for _, j := range steady {
					wi, wj := float64(weights[i]), float64(weights[j])
					if d := math.Abs(float64(picks[i])/wi - float64(picks[j])/wj); i != j && d > 1/wi+1/wj+1e-9 {
						t.Fatalf("%s and %s differ by %v: %v %v", i, j, d, picks, weights)
					}
				}
			}
		}
	})
}

func TestSC9_ten_thousand_keys_all_get_their_turn(t *testing.T) {
	t.Parallel()
	var keys []string
	for i := range 10_000 {
		keys = append(keys, fmt.Sprintf("k%05d", i))
	}
	var turns Turns
	round := turns.Round("lane", keys, evenly)
	for n := range 20_000 {
		key, _ := round.Next()
		if want := keys[n%10_000]; key != want {
			t.Fatalf("pick %d is %s, want %s", n, key, want)
		}
		round.Took()
	}
	for _, key := range keys {
		turns.Idle("lane", key)
	}
	if left := len(turns.lanes["lane"].keys); left != 0 {
		t.Errorf("%d keys of an empty lane are remembered", left)
	}
}

func TestS24_keys_that_come_once_and_go_are_forgotten(t *testing.T) {
	t.Parallel()
	var turns Turns
	turns.Idle("no lane", "a")
	for n := range 20_000 {
		guest := fmt.Sprint("guest", n)
		pick(t, &turns, []string{"steady", guest}, evenly)
		pick(t, &turns, []string{"steady", guest}, evenly)
		turns.Idle("lane", guest)
		turns.Idle("lane", guest)
		turns.Idle("lane", "never seen")
	}
	if left := len(turns.lanes["lane"].keys); left > 3000 {
		t.Errorf("%d keys are remembered", left)
	}
	if busy := turns.lanes["lane"].busy; busy != 1 {
		t.Errorf("%d keys count as busy", busy)
	}
}

func BenchmarkRound10000Keys(b *testing.B) {
	var keys []string
	for i := range 10_000 {
		keys = append(keys, fmt.Sprintf("k%05d", i))
	}
	var turns Turns
	b.ReportAllocs()
	for b.Loop() {
		round := turns.Round("lane", keys, evenly)
		for range 1000 {
			round.Next()
			round.Took()
		}
	}
}
