package core

import "testing"

func TestU122_work_is_its_submitters_by_the_id_of_the_key(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of, by Submitter
		want   bool
	}{
		"the key":                           {Submitter{"shop", "a"}, Submitter{"shop", "a"}, true},
		"the key under another name":        {Submitter{"shop", "a"}, Submitter{"store", "a"}, true},
		"another key of the name":           {Submitter{"shop", "a"}, Submitter{"shop", "b"}, false},
		"a name without a key":              {Submitter{"shop", "a"}, Submitter{"shop", ""}, false},
		"a record of a name":                {Submitter{"shop", ""}, Submitter{"shop", "a"}, true},
		"a record of a name, another name":  {Submitter{"shop", ""}, Submitter{"store", "a"}, false},
		"a record of a name, without a key": {Submitter{"shop", ""}, Submitter{"shop", ""}, true},
	} {
		if got := c.of.Is(c.by); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
