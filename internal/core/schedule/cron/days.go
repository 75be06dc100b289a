package cron

// days are the days of a month that the two day fields allow.
type days struct {
	month    uint64 // plain days of the month
	before   uint64 // n: the day n days before the last one
	nearest  uint64 // the weekday nearest to day n
	lastWork bool   // the last weekday of the month
	week     uint64 // plain days of the week, 0 is Sunday
	lastWeek uint64 // the last such day of the week
	nth      [6]uint64
	either   bool // one of the two fields is enough
}

func daysOf(ofMonth, ofWeek *field) days {
	d := days{month: ofMonth.bits()}
	ofWeek.each(func(v int) { d.week |= 1 << (v % 7) })
	for _, it := range ofMonth.items {
		switch it.kind {
		case itemLast:
			d.before |= 1 << it.b
		case itemNearest:
			d.nearest |= 1 << it.a
		case itemLastW:
			d.lastWork = true
		}
	}
	for _, it := range ofWeek.items {
		switch it.kind {
		case itemLastDay:
			d.lastWeek |= 1 << (it.a % 7)
		case itemNth:
			d.nth[it.b] |= 1 << (it.a % 7)
		}
	}
	return d
}

// of returns the days of that month, as a set of numbers from 1.
func (d *days) of(year, month int) uint64 {
	length := monthLength(year, month)
	first := weekday(dayNumber(year, month, 1))
	ofMonth, ofWeek := d.ofMonth(length, first), d.ofWeek(length, first)
	if d.either {
		return ofMonth | ofWeek
	}
	return ofMonth & ofWeek
}

// ofMonth returns what the day of month allows in a month of that length, whose first day is that day of the week.
func (d *days) ofMonth(length, first int) uint64 {
	set := below(d.month, length+1)
	if d.before == 0 && d.nearest == 0 && !d.lastWork {
		return set
	}
	for n := range length {
		if has(d.before, n) {
			set |= 1 << (length - n)
		}
		if has(d.nearest, n+1) {
			set |= 1 << workday(n+1, length, first)
		}
	}
	if d.lastWork {
		set |= 1 << workday(length, length, first)
	}
	return set
}

// workday returns the day from Monday to Friday that is nearest to a day, inside the month.
func workday(day, length, first int) int {
	switch (first + day - 1) % 7 {
	case 6: // Saturday
		if day == 1 {
			return 3
		}
		return day - 1
	case 0: // Sunday
		if day == length {
			return length - 2
		}
		return day + 1
	default:
		return day
	}
}

// ofWeek returns what the day of week allows.
func (d *days) ofWeek(length, first int) uint64 {
	begun := (d.week | d.week<<7) >> first & 127 // bit 0 is the first day of the month
	set := (begun | begun<<7 | begun<<14 | begun<<21 | begun<<28) << 1
	for day := 0; day < 7 && d.lastWeek != 0; day++ {
		if has(d.lastWeek, day) {
			set |= 1 << (length - (first+length-1-day+7)%7)
		}
	}
	for n := 1; n <= 5; n++ {
		for day := 0; day < 7 && d.nth[n] != 0; day++ {
			if has(d.nth[n], day) {
				set |= 1 << (1 + (day-first+7)%7 + 7*(n-1))
			}
		}
	}
	return below(set, length+1)
}

// dayNumber returns the days from 1970-01-01 to a date.
func dayNumber(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	// Years begin in March here, so that the day that leap years add is the last one.
	y := int64(year)
	return 365*y + y/4 - y/100 + y/400 + int64(153*(month-3)+2)/5 + int64(day) - 719_469
}

// civil returns the date that is so many days after 1970-01-01. The year must be after 0.
func civil(number int64) (year, month, day int) {
	n := number + 719_468
	era := n / 146_097
	inEra := n % 146_097
	y := (inEra - inEra/1460 + inEra/36_524 - inEra/146_096) / 365
	inYear := int(inEra - (365*y + y/4 - y/100))
	m := (5*inYear + 2) / 153
	year, month, day = int(era*400+y), m+3, inYear-(153*m+2)/5+1
	if month > 12 {
		return year + 1, month - 12, day
	}
	return year, month, day
}

// weekday returns the day of the week of a day number, 0 for Sunday.
func weekday(number int64) int {
	_, day := floorDiv(number+4, 7)
	return int(day)
}

func monthLength(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}

// floorDiv divides so that the rest is not negative.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}
