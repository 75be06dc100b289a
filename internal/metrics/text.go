package metrics

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// contentType is the content type of the text format. No name needs escaping.
const contentType = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

// ServeHTTP writes all readings in Prometheus text format; 500 if they are contradictory.
func (r Registry) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	families, err := r.Gather()
	if err != nil {
		http.Error(w, "contradictory metrics:\n\n"+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK) // even without readings
	// There is no one to report a failed write to.
	_ = writeText(w, families)
}

// writeText writes families as text, one by one.
func writeText(w io.Writer, families []Family) error {
	var p textPage
	for i := range families {
		p.Reset()
		p.family(&families[i])
		if _, err := w.Write(p.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// textPage is the text being written.
type textPage struct{ bytes.Buffer }

func (p *textPage) family(f *Family) {
	p.texts("# HELP ", f.Name, " ", escaped(f.Help, false), "\n# TYPE ", f.Name, " ", string(f.Type), "\n")
	order := f.labelOrder()
	for i := range f.Samples {
		p.sample(f, order, &f.Samples[i])
	}
}

// sample writes the lines of a sample.
func (p *textPage) sample(f *Family, order []int, s *Sample) {
	switch labels := labelPairs(f, order, s.Labels); f.Type {
	case TypeHistogram:
		for i, bound := range f.Buckets {
			p.line(f.Name, "_bucket", labels, "le", number(bound), s.Points[i])
		}
		p.line(f.Name, "_bucket", labels, "le", number(math.Inf(1)), s.Count)
		p.line(f.Name, "_sum", labels, "", "", s.Value)
		p.line(f.Name, "_count", labels, "", "", s.Count)
	case TypeSummary:
		for i, quantile := range f.Buckets {
			p.line(f.Name, "", labels, "quantile", number(quantile), s.Points[i])
		}
		p.line(f.Name, "_sum", labels, "", "", s.Value)
		p.line(f.Name, "_count", labels, "", "", s.Count)
	default:
		p.line(f.Name, "", labels, "", "", s.Value)
	}
}

// labelPairs returns labels as they are written between braces.
func labelPairs(f *Family, order []int, values []string) string {
	var pairs []string
	for _, i := range order {
		pairs = append(pairs, f.Labels[i].Name+`="`+escaped(strings.ToValidUTF8(values[i], "\uFFFD"), true)+`"`)
	}
	return strings.Join(pairs, ",")
}

// line writes one number. The label with the place in a histogram or summary comes last; "": none.
func (p *textPage) line(name, suffix, labels, place, at string, value float64) {
	p.texts(name, suffix)
	if labels != "" || place != "" {
		p.texts("{", labels)
		if place != "" {
			if labels != "" {
				p.texts(",")
			}
			p.texts(place, `="`, at, `"`)
		}
		p.texts("}")
	}
	p.texts(" ", number(value), "\n")
}

func (p *textPage) texts(all ...string) {
	for _, text := range all {
		p.WriteString(text)
	}
}

// number formats a value, including NaN, +Inf and -Inf.
func number(value float64) string {
	if math.IsInf(value, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

// escaped escapes a help text or a label value.
func escaped(text string, quoted bool) string {
	if !strings.ContainsAny(text, "\\\n\"") {
		return text
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "\n", `\n`)
	if quoted {
		text = strings.ReplaceAll(text, `"`, `\"`)
	}
	return text
}
