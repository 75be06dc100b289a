package flowfabric

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of what the doctor says and of settings (U113).

// MarshalJSON writes the check as the HTTP API shows it.
func (c Check) MarshalJSON() ([]byte, error) { return wire.Marshal(wire.Check(c)) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *Check) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Check](text)
	*c = Check(*w)
	return err
}

// MarshalJSON writes the answer as the HTTP API shows it.
func (c Checkup) MarshalJSON() ([]byte, error) {
	w := wire.Checkup{OK: c.OK, Checks: []wire.Check{}}
	for _, one := range c.Checks {
		w.Checks = append(w.Checks, wire.Check(one))
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *Checkup) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Checkup](text)
	*c = checkupFrom(w)
	return err
}

func checkupFrom(w *wire.Checkup) Checkup {
	c := Checkup{OK: w.OK, Checks: []Check{}}
	for _, one := range w.Checks {
		c.Checks = append(c.Checks, Check(one))
	}
	return c
}

// MarshalJSON writes the loss as the HTTP API shows it.
func (r Rollback) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.Rollback{From: r.From, To: r.To, Incarnation: r.Incarnation, At: wire.Time{Time: r.At}})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Rollback) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Rollback](text)
	*r = rollbackFrom(*w)
	return err
}

func rollbackFrom(w wire.Rollback) Rollback {
	return Rollback{From: w.From, To: w.To, Incarnation: w.Incarnation, At: w.At.Time}
}

// MarshalJSON writes the setting as the HTTP API shows it.
func (s Setting) MarshalJSON() ([]byte, error) { return wire.Marshal(s.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *Setting) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Setting](text)
	*s = settingFrom(*w)
	return err
}

func (s Setting) wire() wire.Setting {
	w := wire.Setting{Name: s.Name, Source: s.Source}
	if s.Value != "" {
		w.Value, _ = json.Marshal(s.Value) // a text
	}
	return w
}

func settingFrom(w wire.Setting) Setting {
	s := Setting{Name: w.Name, Source: w.Source}
	if len(w.Value) > 0 && json.Unmarshal(w.Value, &s.Value) != nil {
		s.Value = string(w.Value) // of a server that shows numbers as numbers
	}
	return s
}
