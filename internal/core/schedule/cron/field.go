package cron

import (
	"strconv"
	"strings"
)

// unit is what a field counts.
type unit struct {
	name     string
	min, max int
	words    []string // of the values from min on
	day      byte     // 'm': day of month; 'w': day of week
}

var (
	seconds     = unit{name: "second", max: 59}
	minutes     = unit{name: "minute", max: 59}
	hours       = unit{name: "hour", max: 23}
	daysOfMonth = unit{name: "day of month", min: 1, max: 31, day: 'm'}
	months      = unit{name: "month", min: 1, max: 12, words: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}}
	daysOfWeek  = unit{name: "day of week", max: 7, words: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, day: 'w'}
	years       = unit{name: "year", min: 1970, max: 2199}
)

// item is one part of a field between commas.
type item struct {
	kind  byte // see below
	a, b  int
	step  int  // 0: none
	ranks bool // b of a range was written
}

// The kinds of an item.
const (
	itemAll     = '*' // every value
	itemValues  = 'v' // a, or a-b
	itemLast    = 'L' // the last day of the month, or b days before it
	itemLastDay = 'l' // the last weekday a of the month
	itemNearest = 'W' // the weekday nearest to day a
	itemLastW   = 'w' // the last weekday, Monday to Friday, of the month
	itemNth     = '#' // the bth weekday a of the month
)

// field is the items of a field.
type field struct {
	unit  *unit
	items []item
}

// open reports whether the field begins with * or ?.
func (f *field) open() bool { return f.items[0].kind == itemAll }

// parser reads one field.
type parser struct {
	unit *unit
	text string
	base int // the place of text in the line
	at   int
}

// parseField reads a field that begins at that place of a line.
func parseField(u *unit, text string, place int) (field, error) {
	p := parser{unit: u, text: text, base: place}
	f := field{unit: u}
	for {
		it, err := p.item()
		if err != nil {
			return field{}, err
		}
		f.items = append(f.items, it)
		if p.at == len(text) {
			return f, nil
		}
		if text[p.at] != ',' {
			return field{}, p.fault("%s is not expected here", p.found())
		}
		p.at++
	}
}

func (p *parser) fault(format string, args ...any) error {
	return fault(p.base+p.at, p.unit.name+": "+format, args...)
}

// found names the byte at fault.
func (p *parser) found() string {
	if p.at >= len(p.text) {
		return "the end of the field"
	}
	return strconv.QuoteToASCII(p.text[p.at : p.at+1])
}

// take consumes a byte if it is the next one, in either case.
func (p *parser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at]|0x20 == c|0x20 {
		p.at++
		return true
	}
	return false
}

func (p *parser) item() (item, error) {
	if p.at == len(p.text) || p.text[p.at] == ',' {
		return item{}, p.fault("an item is empty")
	}
	if p.take('*') || p.take('?') {
		it := item{kind: itemAll, a: p.unit.min, b: p.unit.max}
		return it, p.step(&it)
	}
	if p.unit.day == 'm' && p.take('L') {
		return p.last()
	}
	it := item{kind: itemValues}
	err := p.value(&it.a)
	if err != nil {
		return item{}, err
	}
	it.b = it.a
	switch {
	case p.unit.day == 'm' && p.take('W'):
		it.kind = itemNearest
		return it, p.plain()
	case p.unit.day == 'w' && p.take('L'):
		it.kind = itemLastDay
		return it, p.plain()
	case p.unit.day == 'w' && p.take('#'):
		it.kind = itemNth
		return it, p.nth(&it)
	case p.take('-'):
		return it, p.rest(&it)
	}
	if p.at < len(p.text) && p.text[p.at] == '/' {
		it.b = p.unit.max
	}
	return it, p.step(&it)
}

// last reads what follows an L in the days of a month.
func (p *parser) last() (item, error) {
	if p.take('W') {
		return item{kind: itemLastW}, p.plain()
	}
	it := item{kind: itemLast}
	if p.take('-') {
		begin := p.at
		n, err := p.number()
		if err != nil {
			return item{}, err
		}
		if n < 1 || n > 30 {
			p.at = begin
			return item{}, p.fault("L-n takes 1..30 days before the last day")
		}
		it.b = n
	}
	return it, p.plain()
}

// plain refuses a range or a step after a mark.
func (p *parser) plain() error {
	if p.at < len(p.text) && p.text[p.at] != ',' {
		return p.fault("L, W and # take neither a range nor a step")
	}
	return nil
}

// nth reads the number behind a #.
func (p *parser) nth(it *item) error {
	begin := p.at
	n, err := p.number()
	if err != nil {
		return err
	}
	if n < 1 || n > 5 {
		p.at = begin
		return p.fault("# takes a number of 1..5")
	}
	it.b = n
	return p.plain()
}

// rest reads the end of a range, and its step.
func (p *parser) rest(it *item) error {
	begin := p.at
	if p.at < len(p.text) && (p.text[p.at]|0x20 == 'l' || p.text[p.at]|0x20 == 'w') {
		return p.fault("L and W must not stand in a range")
	}
	if err := p.value(&it.b); err != nil {
		return err
	}
	it.ranks = true
	if p.at < len(p.text) && strings.IndexByte("LlWw#", p.text[p.at]) >= 0 {
		return p.fault("L, W and # must not stand in a range")
	}
	if it.a > it.b {
		p.at = begin
		err := fault(p.base+p.at, "%s: the range ends before it begins: %d-%d", p.unit.name, it.a, it.b)
		if p.unit.day == 'w' && it.b == 0 {
			return err.WithHint("Sunday at the end of a range is 7")
		}
		return err
	}
	return p.step(it)
}

// step reads /n, if it is there.
func (p *parser) step(it *item) error {
	if !p.take('/') {
		return nil
	}
	begin := p.at
	n, err := p.number()
	if err != nil {
		return err
	}
	if n < 1 || n > p.unit.max-p.unit.min {
		p.at = begin
		return p.fault("a step must be in 1..%d", p.unit.max-p.unit.min)
	}
	it.step = n
	return nil
}

// value reads a number or a word within the bounds of the unit.
func (p *parser) value(into *int) error {
	for i, word := range p.unit.words {
		if end := p.at + len(word); end <= len(p.text) && strings.EqualFold(p.text[p.at:end], word) {
			p.at, *into = end, p.unit.min+i
			return nil
		}
	}
	begin := p.at
	n, err := p.number()
	if err != nil {
		return err
	}
	if n < p.unit.min || n > p.unit.max {
		p.at = begin
		return p.fault("a value must be in %d..%d", p.unit.min, p.unit.max)
	}
	*into = n
	return nil
}

// number reads up to four digits.
func (p *parser) number() (int, error) {
	begin, n := p.at, 0
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		if p.at-begin == 4 {
			p.at = begin
			return 0, p.fault("the number is too long")
		}
		n = 10*n + int(p.text[p.at]-'0')
		p.at++
	}
	if p.at == begin {
		return 0, p.fault("%s is not a value", p.found())
	}
	return n, nil
}

// append writes the field in its canonical form, from which parseField makes an equal one.
func (f *field) append(to []byte) []byte {
	for i, it := range f.items {
		if i > 0 {
			to = append(to, ',')
		}
		to = it.append(to, f.unit)
	}
	return to
}

func (it *item) append(to []byte, u *unit) []byte {
	number := func(mark string, n int) { to = strconv.AppendInt(append(to, mark...), int64(n), 10) }
	switch it.kind {
	case itemAll:
		to = append(to, '*')
	case itemLast:
		to = append(to, 'L')
		if it.b > 0 {
			number("-", it.b)
		}
	case itemLastW:
		to = append(to, "LW"...)
	case itemNearest:
		number("", it.a)
		to = append(to, 'W')
	case itemLastDay:
		number("", it.a)
		to = append(to, 'L')
	case itemNth:
		number("", it.a)
		number("#", it.b)
	default:
		number("", it.a)
		if it.ranks {
			number("-", it.b)
		}
	}
	if it.step > 0 {
		number("/", it.step)
	}
	return to
}
