package core

import "container/heap"

// adjacency is a graph with numbered names: the edges of node i lead to targets[begin[i]:begin[i+1]], in the order given.
type adjacency struct {
	names   []string
	begin   []int
	targets []int
}

// newAdjacency numbers the names in order, followed by those that occur only in edges.
func newAdjacency(names []string, edges [][2]string) *adjacency {
	g := &adjacency{}
	numbers := make(map[string]int, len(names))
	number := func(name string) int {
		n, known := numbers[name]
		if !known {
			n = len(g.names)
			numbers[name] = n
			g.names = append(g.names, name)
		}
		return n
	}
	for _, name := range names {
		number(name)
	}
	ends := make([][2]int, len(edges))
	for i, e := range edges {
		ends[i] = [2]int{number(e[0]), number(e[1])}
	}
	g.begin = make([]int, len(g.names)+1)
	for _, e := range ends {
		g.begin[e[0]+1]++
	}
	for i := range g.names {
		g.begin[i+1] += g.begin[i]
	}
	g.targets = make([]int, len(edges))
	next := append([]int(nil), g.begin...)
	for _, e := range ends {
		g.targets[next[e[0]]] = e[1]
		next[e[0]]++
	}
	return g
}

// FindCycle returns a cycle in a graph of edges {from, to}: its names along the edges, the first one repeated at the end; nil if there is none. It
// is linear in the number of edges, handles any depth (F20), and returns the same cycle for the same edges.
func FindCycle(edges [][2]string) []string {
	g := newAdjacency(nil, edges)
	const onPath, done = 1, 2
	state := make([]uint8, len(g.names))
	next := append([]int(nil), g.begin...) // the next edge of each node to follow
	var path []int
	for root := range g.names {
		if state[root] == done {
			continue
		}
		path = append(path, root)
		for len(path) > 0 {
			at := path[len(path)-1]
			state[at] = onPath
			if next[at] == g.begin[at+1] {
				state[at] = done
				path = path[:len(path)-1]
				continue
			}
			to := g.targets[next[at]]
			next[at]++
			switch state[to] {
			case onPath:
				return g.cycle(path, to)
			case done:
			default:
				path = append(path, to)
			}
		}
	}
	return nil
}

// cycle returns the names of the end of the path, from where it returns to.
func (g *adjacency) cycle(path []int, to int) []string {
	begin := len(path) - 1
	for path[begin] != to {
		begin--
	}
	var names []string
	for _, n := range path[begin:] {
		names = append(names, g.names[n])
	}
	return append(names, g.names[to])
}

// TopologicalOrder sorts names so that every edge {from, to} leads forward, keeping the given order where the edges allow it. Names on a cycle, and
// those after one, are omitted.
func TopologicalOrder(names []string, edges [][2]string) []string {
	g := newAdjacency(names, edges)
	waits := make([]int, len(g.names))
	for _, to := range g.targets {
		waits[to]++
	}
	var free numberHeap
	for n := range g.names {
		if waits[n] == 0 {
			free = append(free, n) // ascending, so it is a heap
		}
	}
	order := make([]string, 0, len(g.names))
	for len(free) > 0 {
		n := heap.Pop(&free).(int)
		order = append(order, g.names[n])
		for _, to := range g.targets[g.begin[n]:g.begin[n+1]] {
			if waits[to]--; waits[to] == 0 {
				heap.Push(&free, to)
			}
		}
	}
	return order
}

// numberHeap pops the smallest number first.
type numberHeap []int

func (h numberHeap) Len() int           { return len(h) }
func (h numberHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h numberHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *numberHeap) Push(n any)        { *h = append(*h, n.(int)) }
func (h *numberHeap) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	*h = (*h)[:last]
	return n
}
