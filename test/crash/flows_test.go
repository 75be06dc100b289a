package crash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
)

// What victims of these stories do: their first member fails and the rest is skipped, or they cancel a flow.
const (
	cascadeNodes  = 5000 // in one line of 200, and beside it all that the first one leads to
	cascadeLevels = 200
	cancelMembers = 10_000
	cancelQuick   = 50 // one in so many has finished before the cancel
	marks         = 12 // a victim says so often how far it is
	triesToCatch  = 5
)

var (
	breaking flowfabric.Kind[flowfabric.None, flowfabric.None] = "breaking"
	quick    flowfabric.Kind[flowfabric.None, flowfabric.None] = "quick"
	endless  flowfabric.Kind[flowfabric.None, flowfabric.None] = "endless" // no worker takes it
)

// cascades submits a flow whose first member fails, and says how far the skips are, until it is killed.
func cascades(store string) error {
	ctx := context.Background()
	client, err := embedded.Open(ctx, store)
	if err != nil {
		return err
	}
	f := flowfabric.Flow{Kind: "cascade", Nodes: []flowfabric.Node{breaking.Node("root", flowfabric.None{})}}
	for level, before := 1, "root"; level < cascadeLevels; level++ {
		name := fmt.Sprintf("level%03d", level)
		f.Nodes = append(f.Nodes, endless.Node(name, flowfabric.None{}).After(before))
		before = name
	}
	for len(f.Nodes) < cascadeNodes {
		f.Nodes = append(f.Nodes, endless.Node(fmt.Sprintf("leaf%04d", len(f.Nodes)), flowfabric.None{}).After("root"))
	}
	run, err := client.Flows().Submit(ctx, f)
	if err != nil {
		return err
	}
	fmt.Println("flow", run.ID)
	var leaves []flowfabric.ID
	for name, id := range run.Members {
		if strings.HasPrefix(name, "leaf") {
			leaves = append(leaves, id)
		}
	}
	slices.Sort(leaves)
	workOn(ctx, client)
	return tellEnds(ctx, client, leaves)
}

// cancels submits a flow, lets some of its members finish, cancels the rest, and says how far that is, until it is killed.
func cancels(store string) error {
	ctx := context.Background()
	client, err := embedded.Open(ctx, store)
	if err != nil {
		return err
	}
	nodes := make([]flowfabric.Node, cancelMembers)
	for i := range nodes {
		nodes[i] = endless.Node(fmt.Sprintf("n%05d", i), flowfabric.None{})
		if i%cancelQuick == 0 {
			nodes[i].Kind = string(quick)
		}
	}
	run, err := client.Flows().Submit(ctx, flowfabric.Flow{Kind: "cancel", Nodes: nodes[:cancelMembers/2], Unsealed: true})
	if err != nil {
		return err
	}
	grown, err := client.Flows().Extend(ctx, run.ID, flowfabric.FlowExtension{Nodes: nodes[cancelMembers/2:], Seal: true})
	if err != nil {
		return err
	}
	fmt.Println("flow", run.ID)
	maps.Copy(run.Members, grown.Members)
	workOn(ctx, client)
	var open []flowfabric.ID // in the order in which they end
	for i := range nodes {
		id := run.Members[nodes[i].Name]
		if i%cancelQuick != 0 {
			open = append(open, id)
			continue
		}
		x, err := client.Wait(ctx, id)
		if err != nil {
			return err
		}
		fmt.Println("finished", id, x.Status, x.CompletedAt.UnixMilli())
	}
	if _, err := client.Flows().Cancel(ctx, run.ID, flowfabric.FlowCancel{Reason: "enough"}); err != nil {
		return err
	}
	return tellEnds(ctx, client, open)
}

// workOn has a worker at what ends by itself.
func workOn(ctx context.Context, client *flowfabric.Client) {
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Concurrency: 16})
	flowfabric.Handle(worker, breaking, func(context.Context, *flowfabric.Task, flowfabric.None) (flowfabric.None, error) {
		return flowfabric.None{}, flowfabric.Permanent(errors.New("no"))
	})
	flowfabric.Handle(worker, quick, func(context.Context, *flowfabric.Task, flowfabric.None) (flowfabric.None, error) {
		return flowfabric.None{}, nil
	})
	go func() { _ = worker.Run(ctx) }()
}

// tellEnds says how many of some executions have ended, which do so in this order.
func tellEnds(ctx context.Context, client *flowfabric.Client, ids []flowfabric.ID) error {
	for mark := 1; mark <= marks; mark++ {
		n := len(ids) * mark / (marks + 1)
		for {
			x, err := client.Get(ctx, ids[n])
			if err != nil {
				return err
			}
			if x.Status.Terminal() {
				break
			}
			<-time.After(time.Millisecond)
		}
		fmt.Println("ended", n)
	}
	select {}
}

// onBothStores runs a story on a file and on Postgres.
func onBothStores(t *testing.T, story func(t *testing.T, store string)) {
	t.Helper()
	for name, store := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "app.db") },
		"postgres": func(t *testing.T) string { return cluster.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, store(t))
		})
	}
}

// halfway is a flow whose process was killed in the middle of its end, and how it has ended nevertheless.
type halfway struct {
	said    [][]string
	view    *flowfabric.FlowView
	members []api.FlowMember
	died    time.Time
}

// caught reports whether the victim was killed in the middle: some members had ended so when it died, and others have since.
func (h *halfway) caught(status flowfabric.Status) bool {
	before, after := 0, 0
	for i := range h.members {
		switch m := &h.members[i]; {
		case m.Status != status:
		case m.EndedAt.After(h.died):
			after++
		default:
			before++
		}
	}
	return before > 0 && after > 0
}

// killHalfway kills victims until one is caught in the middle, and hands over what became of its flow in a process that went on with it.
func killHalfway(t *testing.T, store, deed string, status flowfabric.Status, check func(ctx context.Context, client *flowfabric.Client, h *halfway)) {
	t.Helper()
	for try := range triesToCatch {
		h := &halfway{said: until(t, "ended", 1+try%3, variableStore+"="+store, variableDeed+"="+deed), died: time.Now()}
		if h.goesOn(t, store, func(ctx context.Context, client *flowfabric.Client) {
			check(ctx, client, h)
		}); h.caught(status) {
			return
		}
		t.Logf("try %d: the kill came too late", try)
	}
	t.Error("no victim was killed in the middle: this proves nothing")
}

// goesOn opens the store again, waits for the end of the flow, and looks at it.
func (h *halfway) goesOn(t *testing.T, store string, check func(ctx context.Context, client *flowfabric.Client)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	client, err := embedded.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	id := flowfabric.ID("")
	for _, line := range h.said {
		if line[0] == "flow" {
			id = flowfabric.ID(line[1])
		}
	}
	if h.view, err = client.Flows().Wait(ctx, id); err != nil {
		t.Fatal(err)
	}
	for m, err := range client.Flows().Members(ctx, id, flowfabric.MemberQuery{PageOptions: flowfabric.PageOptions{Limit: 1000}}) {
		if err != nil {
			t.Fatal(err)
		}
		h.members = append(h.members, m)
	}
	check(ctx, client)
	told := toldOf(ctx, t, client)
	for i := range h.members {
		if n := told[h.members[i].ID]["execution.completed"]; n != 1 {
			t.Errorf("F28, F50: the end of %s is reported %d times", h.members[i].Name, n)
		}
	}
	if found, err := client.Admin().Integrity(ctx); err != nil || !found.OK {
		t.Errorf("S42: %+v, %v", found, err)
	}
}

// counts are those of a flow that are not 0.
func (h *halfway) counts() map[string]int {
	counts := maps.Clone(h.view.Counts)
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

func TestF28_F29_FI7_FI8_a_cascade_of_skips_outlives_kill_9_in_its_middle(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, store string) {
		killHalfway(t, store, "cascade", flowfabric.StatusSkipped, func(_ context.Context, _ *flowfabric.Client, h *halfway) {
			want := map[string]int{"failed": 1, "skipped": cascadeNodes - 1}
			if got := h.counts(); h.view.State != flowfabric.FlowFailed || !maps.Equal(got, want) || h.view.Nodes != cascadeNodes {
				t.Errorf("FI7, FI10: %s with %d members: %v", h.view.State, h.view.Nodes, got)
			}
			if !maps.Equal(h.view.Joins, map[string]int{"impossible": cascadeNodes - 1}) {
				t.Errorf("FI3: joins %v", h.view.Joins)
			}
			for _, m := range h.members {
				if m.Name != "root" && (m.Reason != "dependency_impossible" || !m.StartedAt.IsZero() || m.Join.Impossible != 1) {
					t.Errorf("F26: %s is %s %s, join %+v", m.Name, m.Status, m.Reason, m.Join)
				}
			}
		})
	})
}

func TestF49_F50_F51_FI9_a_cancel_of_a_flow_outlives_kill_9_in_its_middle(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, store string) {
		const finished = cancelMembers / cancelQuick
		killHalfway(t, store, "cancel", flowfabric.StatusCancelled, func(ctx context.Context, client *flowfabric.Client, h *halfway) {
			want := map[string]int{"completed": finished, "cancelled": cancelMembers - finished}
			if got := h.counts(); h.view.State != flowfabric.FlowCancelled || !maps.Equal(got, want) || h.view.Nodes != cancelMembers {
				t.Errorf("F51, FI10: %s with %d members: %v", h.view.State, h.view.Nodes, got)
			}
			again, err := client.Flows().Cancel(ctx, h.view.ID, flowfabric.FlowCancel{Reason: "once more"})
			told := api.FlowCancelProgress{
				State: flowfabric.FlowCancelled, Policy: flowfabric.CancelAll, Reason: "enough", Cancelled: cancelMembers - finished, FinishedBefore: finished,
			}
			if again != told || err != nil {
				t.Errorf("F52, F53: %+v, %v", again, err)
			}
			h.checkUntouched(t)
		})
	})
}

// checkUntouched compares the members that had finished before the cancel with what the victim said of them.
func (h *halfway) checkUntouched(t *testing.T) {
	t.Helper()
	before := map[flowfabric.ID]string{}
	for _, line := range h.said {
		if line[0] == "finished" {
			before[flowfabric.ID(line[1])] = line[2] + " " + line[3]
		}
	}
	if len(before) != cancelMembers/cancelQuick {
		t.Errorf("%d have finished before the cancel", len(before))
	}
	for _, m := range h.members {
		now := string(m.Status) + " " + strconv.FormatInt(m.EndedAt.UnixMilli(), 10)
		if was, finished := before[m.ID]; finished && was != now {
			t.Errorf("F50: %s was %s and is %s", m.Name, was, now)
		} else if !finished && m.Reason != "flow_cancelled" {
			t.Errorf("F50: %s is %s %s", m.Name, m.Status, m.Reason)
		}
	}
}
