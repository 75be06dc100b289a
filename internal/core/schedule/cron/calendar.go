package cron

import (
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Calendar is a pattern whose fields have names, and must all match (T10). An empty field means 0 for second, minute and hour, and every value for the others.
type Calendar struct {
	Second     string `json:"second,omitempty"`
	Minute     string `json:"minute,omitempty"`
	Hour       string `json:"hour,omitempty"`
	DayOfMonth string `json:"day_of_month,omitempty"`
	Month      string `json:"month,omitempty"`
	DayOfWeek  string `json:"day_of_week,omitempty"`
	Year       string `json:"year,omitempty"`    // 1970..2199
	Comment    string `json:"comment,omitempty"` // up to 256 bytes; means nothing
}

// Parse returns the pattern of the calendar: invalid_schedule, with the field and the place in its text.
func (c *Calendar) Parse() (*Pattern, error) { return c.parse("0") }

// ParseExcept is Parse for a calendar that removes moments: its second, minute and hour mean every value if they are empty (T12).
func (c *Calendar) ParseExcept() (*Pattern, error) { return c.parse("*") }

func (c *Calendar) parse(clock string) (*Pattern, error) {
	if why := base.CheckText(c.Comment, 0, MaxText); why != "" {
		return nil, base.Errorf(base.CodeInvalidSchedule, "%s", why).WithField("comment")
	}
	parts := []struct {
		name, text, absent string
		unit               *unit
	}{
		{"second", c.Second, clock, &seconds},
		{"minute", c.Minute, clock, &minutes},
		{"hour", c.Hour, clock, &hours},
		{"day_of_month", c.DayOfMonth, "*", &daysOfMonth},
		{"month", c.Month, "*", &months},
		{"day_of_week", c.DayOfWeek, "*", &daysOfWeek},
		{"year", c.Year, "*", &years},
	}
	fields := make([]field, 0, len(parts))
	for _, part := range parts {
		if part.text == "" {
			part.text = part.absent
		}
		if len(part.text) > MaxText {
			return nil, fault(0, "is too long: at most %d bytes are allowed", MaxText).WithField(part.name)
		}
		f, err := parseField(part.unit, part.text, 0)
		if err != nil {
			var refusal *base.Error
			if errors.As(err, &refusal) {
				err = refusal.WithField(part.name)
			}
			return nil, err
		}
		fields = append(fields, f)
	}
	return compile(fields, false), nil
}
