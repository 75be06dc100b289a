package metrics

// Tallies are counters in plain memory. Their owner holds a lock around all use of them: where one lock serves a whole batch that costs
// a fraction of what counters cost that anybody may use at any time.
type Tallies struct {
	of  Metric
	all map[string]*Tally
}

// Tally is one counter of Tallies.
type Tally struct {
	labels []string
	n      uint64
}

// Tallies makes the counters in plain memory.
func (c Counter) Tallies() *Tallies { return &Tallies{of: c.Metric, all: map[string]*Tally{}} }

// With finds or makes the counter of these labels. Keep it: to find it takes time.
func (t *Tallies) With(labels ...string) *Tally {
	key := string(appendKey(nil, labels))
	found := t.all[key]
	if found == nil {
		found = &Tally{labels: labels}
		t.all[key] = found
	}
	return found
}

// Inc counts one.
func (t *Tally) Inc() { t.n++ }

// Collect reads the counters.
func (t *Tallies) Collect() []Family {
	family := t.of.Family()
	for _, one := range t.all {
		family.Add(float64(one.n), one.labels...)
	}
	return []Family{family}
}

// Spreads are histograms in plain memory, as Tallies are counters.
type Spreads struct {
	of  Metric
	all map[string]*Spread
}

// Spreads makes the histograms in plain memory.
func (h Histogram) Spreads() *Spreads { return &Spreads{of: h.Metric, all: map[string]*Spread{}} }

// With finds or makes the histogram of these labels. Keep it: to find it takes time.
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
