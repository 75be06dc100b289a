package metrics_test

import (
	"compress/gzip"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

// fixed is a collector of families that are known.
type fixed []metrics.Family

func (f fixed) Collect() []metrics.Family { return f }

// page is what a handler shows, with its head.
func page(t *testing.T, h http.Handler, encoding string) (int, http.Header, string) {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	if encoding != "" {
		request.Header.Set("Accept-Encoding", encoding)
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	body := io.Reader(answer.Body)
	if answer.Header().Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		body = unzipped
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Code, answer.Header(), string(text)
}

// shows fails unless a registry shows a text.
func shows(t *testing.T, r metrics.Registry, want string) {
	t.Helper()
	code, head, text := page(t, r, "gzip")
	if code != 200 || !strings.HasPrefix(head.Get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8") || head.Get("Content-Encoding") != "" {
		t.Errorf("%d %v", code, head)
	}
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// labels are labels of these names.
func labels(names ...string) (all []metrics.Label) {
	for _, name := range names {
		all = append(all, metrics.Label{Name: name})
	}
	return all
}

func TestU199_families_labels_and_samples_are_sorted(t *testing.T) {
	t.Parallel()
	late := metrics.Counter{Metric: metrics.Metric{Name: "z_total", Type: metrics.TypeCounter, Labels: labels("route", "code"), Help: "Last."}}.New()
	late.With("/b", "200").Add(2)
	late.With("/a", "404").Inc()
	late.With("/c", "200").Inc()
	early := metrics.Gauge{Metric: metrics.Metric{Name: "a", Type: metrics.TypeGauge, Help: "First."}}.New()
	early.With().Dec()
	empty := metrics.Counter{Metric: metrics.Metric{Name: "m_total", Type: metrics.TypeCounter, Labels: labels("x"), Help: "Without samples."}}.New()
	shows(t, metrics.Registry{late, empty, early}, `# HELP a First.
# TYPE a gauge
a -1
# HELP z_total Last.
# TYPE z_total counter
z_total{code="200",route="/b"} 2
z_total{code="200",route="/c"} 1
z_total{code="404",route="/a"} 1
`)
}

func TestU199_help_and_label_values_are_escaped(t *testing.T) {
	t.Parallel()
	m := metrics.Metric{Name: "a", Type: metrics.TypeGauge, Labels: labels("x"), Help: "A \"word\",\na \\ line."}
	family := m.Family()
	family.Add(1, "a \"word\",\na \\ line")
	family.Add(2, "b\xff")
	shows(t, metrics.Registry{fixed{family}}, `# HELP a A "word",\na \\ line.
# TYPE a gauge
a{x="a \"word\",\na \\ line"} 1
a{x="b`+"\uFFFD"+`"} 2
`)
}

func TestU199_numbers_have_the_forms_of_the_format(t *testing.T) {
	t.Parallel()
	family := metrics.Metric{Name: "a", Type: metrics.TypeGauge, Labels: labels("x"), Help: "Numbers."}.Family()
	for label, value := range map[string]float64{
		"0": 0, "1": 1, "2": -1, "3": 0.00025, "4": 999999, "5": 21000000, "6": 1e21, "7": 1e-7, "8": math.NaN(), "9": math.Inf(1), "A": math.Inf(-1), "B": math.MaxUint64,
	} {
		family.Add(value, label)
	}
	shows(t, metrics.Registry{fixed{family}}, `# HELP a Numbers.
# TYPE a gauge
a{x="0"} 0
a{x="1"} 1
a{x="2"} -1
a{x="3"} 0.00025
a{x="4"} 999999
a{x="5"} 2.1e+07
a{x="6"} 1e+21
a{x="7"} 1e-07
a{x="8"} NaN
a{x="9"} +Inf
a{x="A"} -Inf
a{x="B"} 1.8446744073709552e+19
`)
}

// spread is a histogram of three bounds.
var spread = metrics.Histogram{Metric: metrics.Metric{
	Name: "h", Type: metrics.TypeHistogram, Labels: labels("lane"), Buckets: []float64{0.5, 1, 3600}, Help: "Spread.",
}}

// spreadText is what spread shows of the values 0.5, 0.75, 1, 2 and 4000.
const spreadText = `# HELP h Spread.
# TYPE h histogram
h_bucket{lane="a",le="0.5"} 1
h_bucket{lane="a",le="1"} 3
h_bucket{lane="a",le="3600"} 4
h_bucket{lane="a",le="+Inf"} 5
h_sum{lane="a"} 4004.25
h_count{lane="a"} 5
`

func TestU199_buckets_count_everything_up_to_their_bound(t *testing.T) {
	t.Parallel()
	shared, plain := spread.New(), spread.Spreads()
	for _, value := range []float64{0.5, 0.75, 1, 2, 4000} {
		shared.With("a").Observe(value)
		plain.With("a").Observe(value)
	}
	shows(t, metrics.Registry{shared}, spreadText)
	shows(t, metrics.Registry{plain}, spreadText)
}

func TestU199_what_is_no_number_is_above_all_bounds(t *testing.T) {
	t.Parallel()
	h := metrics.Histogram{Metric: metrics.Metric{Name: "h", Type: metrics.TypeHistogram, Buckets: []float64{1}, Help: "Spread."}}.New()
	h.With().Observe(math.NaN())
	shows(t, metrics.Registry{h}, `# HELP h Spread.
# TYPE h histogram
h_bucket{le="1"} 0
h_bucket{le="+Inf"} 1
h_sum NaN
h_count 1
`)
}

func TestU199_who_asks_for_gzip_gets_it(t *testing.T) {
	t.Parallel()
	h := metrics.Compressed(metrics.Registry{fixed{metrics.Metric{Name: "a", Type: metrics.TypeGauge, Help: "A."}.Reading(7)}})
	for encoding, zipped := range map[string]bool{
		"": false, "identity": false, "br, zstd": false, "gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0, br": false, "gzip;q=x": false,
	} {
		code, head, text := page(t, h, encoding)
		if code != 200 || text != "# HELP a A.\n# TYPE a gauge\na 7\n" || (head.Get("Content-Encoding") == "gzip") != zipped || head.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %d %v %q", encoding, code, head, text)
		}
	}
}
