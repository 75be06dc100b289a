package zone

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// ahead is how far a forecast reaches: two years.
const ahead = 2 * 366 * 86_400

// Forecast is what a program knew of the next two years of a zone (T16). A later program with other data finds that it no longer holds.
type Forecast struct {
	Zone    string
	From    int64 // instants From <= t < Until are covered
	Until   int64
	Offset  int64    // at From, in seconds
	Changes []Change // in order of time
}

// Change is a change of the clocks.
type Change struct {
	At     int64 `json:"at"`     // the first instant of the new offset
	Offset int64 `json:"offset"` // the new offset, in seconds
}

// Forecast returns the changes of the two years from now.
func (z *Zone) Forecast(now base.Time) Forecast {
	from := floor(now)
	return z.between(from, from+ahead)
}

func (z *Zone) between(from, until int64) Forecast {
	f := Forecast{Zone: z.name, From: from, Until: until, Offset: z.Offset(from)}
	for i := z.At(from) + 1; i < z.Periods() && z.Period(i).Begin < until; i++ {
		f.Changes = append(f.Changes, Change{At: z.Period(i).Begin, Offset: z.Period(i).Offset})
	}
	return f
}

// Holds reports whether the program knows the same of the part of the forecast that is still to come. It does not if the zone no longer exists. A forecast that
// is over holds: nothing follows from it.
func (f Forecast) Holds(now base.Time) bool {
	from := max(f.From, floor(now))
	if from >= f.Until {
		return true
	}
	z, err := Find(f.Zone)
	if err != nil {
		return false
	}
	known := z.between(from, f.Until)
	offset, rest := f.Offset, f.Changes
	for len(rest) > 0 && rest[0].At <= from {
		offset, rest = rest[0].Offset, rest[1:]
	}
	if offset != known.Offset || len(rest) != len(known.Changes) {
		return false
	}
	for i := range rest {
		if rest[i] != known.Changes[i] {
			return false
		}
	}
	return true
}

// storedForecast is the stored form of a forecast.
type storedForecast struct {
	Version int      `json:"v"`
	Zone    string   `json:"zone"`
	From    int64    `json:"from"`
	Until   int64    `json:"until"`
	Offset  int64    `json:"offset"`
	Changes []Change `json:"changes,omitempty"`
}

// forecastVersion is the version of the stored form.
const forecastVersion = 1

// Encode returns the stored form of the forecast.
func (f Forecast) Encode() []byte {
	text, _ := json.Marshal(storedForecast{forecastVersion, f.Zone, f.From, f.Until, f.Offset, f.Changes}) // cannot fail
	return text
}

// DecodeForecast reads what Encode wrote; anything else is corruption.
func DecodeForecast(data []byte) (Forecast, error) {
	var s storedForecast
	err := json.Unmarshal(data, &s)
	if err != nil || s.Version != forecastVersion || s.Zone == "" || s.From >= s.Until {
		return Forecast{}, base.Errorf(base.CodeCorruption, "the stored forecast of a time zone cannot be read").With("record", "time zone")
	}
	last := s.From
	for _, c := range s.Changes {
		if c.At <= last || c.At >= s.Until {
			return Forecast{}, base.Errorf(base.CodeCorruption, "the stored forecast of a time zone cannot be one").With("record", "time zone")
		}
		last = c.At
	}
	return Forecast{Zone: s.Zone, From: s.From, Until: s.Until, Offset: s.Offset, Changes: s.Changes}, nil
}
