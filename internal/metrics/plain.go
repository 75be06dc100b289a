package metrics

// Tallies are counters without locks. Their owner holds a lock for all of them: one lock for a whole batch is much cheaper than
// one concurrent counter per value.
type Tallies struct {
	of  Metric
	all map[string]*Tally
}

// Tally is one counter of Tallies.
type Tally struct {
	labels []string
	n      uint64
}

// Tallies creates the counters.
func (c Counter) Tallies() *Tallies { return &Tallies{of: c.Metric, all: map[string]*Tally{}} }

// With returns the counter with these labels. Keep the result, because a lookup is slow.
func (t *Tallies) With(labels ...string) *Tally {
	key := string(appendKey(nil, labels))
	found := t.all[key]
	if found == nil {
		found = &Tally{labels: labels}
		t.all[key] = found
	}
	return found
}

// Inc adds one.
func (t *Tally) Inc() { t.n++ }

// Collect reads the counters.
func (t *Tallies) Collect() []Family {
	family := t.of.Family()
	for _, one := range t.all {
		family.Add(float64(one.n), one.labels...)
	}
	return []Family{family}
}

// Spreads are histograms without locks, like Tallies.
type Spreads struct {
	of  Metric
	all map[string]*Spread
}

// Spreads creates the histograms.
func (h Histogram) Spreads() *Spreads { return &Spreads{of: h.Metric, all: map[string]*Spread{}} }

// With returns the histogram with these labels. Keep the result, because a lookup is slow.
func (s *Spreads) With(labels ...string) *Spread {
	key := string(appendKey(nil, labels))
	found := s.all[key]
	if found == nil {
		found = newSpread(s.of, labels)
		s.all[key] = found
	}
	return found
}

// Collect reads the histograms.
func (s *Spreads) Collect() []Family {
	family := s.of.Family()
	for _, one := range s.all {
		family.Samples = append(family.Samples, one.sample())
	}
	return []Family{family}
}
