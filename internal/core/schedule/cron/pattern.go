package cron

import "math/bits"

// Pattern is a set of readings: those whose date and time its fields allow. It is never changed.
type Pattern struct {
	fields  []field // as written: second, minute, hour, day of month, month, day of week, and of a calendar the year
	seconds uint64
	minutes uint64
	hours   uint64
	months  uint64
	years   *[4]uint64 // from 1970; nil: every year
	days    days
	flowing bool
	first   int64 // the least time of day, in seconds
	last    int64 // the greatest
}

// Flowing reports whether the minute or hour field begins with * or ? (T14).
func (p *Pattern) Flowing() bool { return p.flowing }

// compile makes a pattern of its fields. either states that one of the day fields is enough where neither begins with *.
func compile(fields []field, either bool) *Pattern {
	p := &Pattern{fields: fields}
	p.seconds, p.minutes, p.hours = fields[0].bits(), fields[1].bits(), fields[2].bits()
	p.days = daysOf(&fields[3], &fields[5])
	p.days.either = either && !fields[3].open() && !fields[5].open()
	p.months = fields[4].bits()
	if len(fields) > 6 && !(len(fields[6].items) == 1 && fields[6].open() && fields[6].items[0].step <= 1) {
		p.years = new([4]uint64)
		fields[6].each(func(year int) { p.years[(year-firstYear)/64] |= 1 << ((year - firstYear) % 64) })
	}
	p.flowing = fields[1].open() || fields[2].open()
	p.first = int64(bits.TrailingZeros64(p.hours))*3600 + int64(bits.TrailingZeros64(p.minutes))*60 + int64(bits.TrailingZeros64(p.seconds))
	p.last = int64(highest(p.hours))*3600 + int64(highest(p.minutes))*60 + int64(highest(p.seconds))
	return p
}

// each calls found for every value of the plain items of the field.
func (f *field) each(found func(value int)) {
	for _, it := range f.items {
		if it.kind != itemAll && it.kind != itemValues {
			continue
		}
		for v := it.a; v <= it.b; v += max(it.step, 1) {
			found(v)
		}
	}
}

// bits returns the plain values of a field below 64.
func (f *field) bits() (set uint64) {
	f.each(func(v int) { set |= 1 << v })
	return set
}

// highest returns the greatest number in a set that is not empty.
func highest(set uint64) int { return 63 - bits.LeadingZeros64(set) }

// from returns the numbers of a set that are at least n, below returns those less than n.
func from(set uint64, n int) uint64  { return set >> n << n }
func below(set uint64, n int) uint64 { return set & (1<<n - 1) }

// has reports whether n is in a set.
func has(set uint64, n int) bool { return set>>n&1 == 1 }

// The years that patterns know, with one more on each side for the offsets of zones.
const (
	firstYear = 1970
	lastYear  = 2199
)

func (p *Pattern) inYear(year int) bool {
	if year < firstYear || year > lastYear {
		return p.years == nil
	}
	return p.years == nil || has(p.years[(year-firstYear)/64], (year-firstYear)%64)
}

// Matches reports whether a reading is one of the pattern.
func (p *Pattern) Matches(reading int64) bool {
	day, clock := floorDiv(reading, 86_400)
	year, month, d := civil(day)
	return has(p.hours, int(clock/3600)) && has(p.minutes, int(clock/60%60)) && has(p.seconds, int(clock%60)) &&
		has(p.months, month) && p.inYear(year) && has(p.days.of(year, month), d)
}

// Next returns the least reading r of the pattern with from <= r < limit.
func (p *Pattern) Next(start, limit int64) (int64, bool) {
	day, clock := floorDiv(start, 86_400)
	year, month, d := civil(day)
	set := p.month(year, month)
	if has(set, d) {
		if c, ok := p.clockFrom(clock); ok {
			return day*86_400 + c, day*86_400+c < limit
		}
	}
	for set = from(set, d+1); set == 0; set = p.month(year, month) {
		if month++; month > 12 {
			year, month = year+1, 1
		}
		if dayNumber(year, month, 1)*86_400 >= limit {
			return 0, false
		}
	}
	reading := dayNumber(year, month, bits.TrailingZeros64(set))*86_400 + p.first
	return reading, reading < limit
}

// Prev returns the greatest reading r of the pattern with limit <= r <= start.
func (p *Pattern) Prev(start, limit int64) (int64, bool) {
	day, clock := floorDiv(start, 86_400)
	year, month, d := civil(day)
	set := p.month(year, month)
	if has(set, d) {
		if c, ok := p.clockUpTo(clock); ok {
			return day*86_400 + c, day*86_400+c >= limit
		}
	}
	for set = below(set, d); set == 0; set = p.month(year, month) {
		if dayNumber(year, month, 1)*86_400 <= limit {
			return 0, false
		}
		if month--; month < 1 {
			year, month = year-1, 12
		}
	}
	reading := dayNumber(year, month, highest(set))*86_400 + p.last
	return reading, reading >= limit
}

// month returns the days of a month that the pattern allows.
func (p *Pattern) month(year, month int) uint64 {
	if !has(p.months, month) || !p.inYear(year) {
		return 0
	}
	return p.days.of(year, month)
}

// clockFrom returns the least time of day that is at least c.
func (p *Pattern) clockFrom(c int64) (int64, bool) {
	h, m, s := int(c/3600), int(c/60%60), int(c%60)
	if has(p.hours, h) {
		if has(p.minutes, m) {
			if rest := from(p.seconds, s); rest != 0 {
				return clockOf(h, m, bits.TrailingZeros64(rest)), true
			}
		}
		if rest := from(p.minutes, m+1); rest != 0 {
			return clockOf(h, bits.TrailingZeros64(rest), bits.TrailingZeros64(p.seconds)), true
		}
	}
	if rest := from(p.hours, h+1); rest != 0 {
		return clockOf(bits.TrailingZeros64(rest), bits.TrailingZeros64(p.minutes), bits.TrailingZeros64(p.seconds)), true
	}
	return 0, false
}

// clockUpTo returns the greatest time of day that is at most c.
func (p *Pattern) clockUpTo(c int64) (int64, bool) {
	h, m, s := int(c/3600), int(c/60%60), int(c%60)
	if has(p.hours, h) {
		if has(p.minutes, m) {
			if rest := below(p.seconds, s+1); rest != 0 {
				return clockOf(h, m, highest(rest)), true
			}
		}
		if rest := below(p.minutes, m); rest != 0 {
			return clockOf(h, highest(rest), highest(p.seconds)), true
		}
	}
	if rest := below(p.hours, h); rest != 0 {
		return clockOf(highest(rest), highest(p.minutes), highest(p.seconds)), true
	}
	return 0, false
}

func clockOf(h, m, s int) int64 { return int64(h)*3600 + int64(m)*60 + int64(s) }
