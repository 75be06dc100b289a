package apifuzz

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func unzip(body []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// crudes are requests that a client with manners cannot send. They end with what is sent: the client then only reads. A key is put in
// where %[3]s stands, the address of the server where %[4]s does.
var crudes = []struct {
	text  string
	wants []string
}{
	{"%[1]s %[2]s HTTP/1.1\r\nHost: %[4]s\r\n%[3]sContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"kind\"", nil}, // cut off
	{"%[1]s %[2]s HTTP/1.1\r\nHost: %[4]s\r\n%[3]sFlowFabric-Namespace: default\r\nContent-Type: application/json\r\nContent-Length: 101711872\r\n\r\n{", []string{"payload_too_large"}},
	{"%[1]s %[2]s HTTP/1.1\r\nHost: %[4]s\r\n%[3]sContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", nil},
	{"%[1]s %[2]s HTTP/1.1\r\nHost: %[4]s\r\n%[3]sContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", nil},
	{"%[1]s %[2]s HTTP/1.1\r\nHost: %[4]s\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", nil},
	{"%[1]s %[2]s HTTP/1.1\r\nHost: %[4]s\r\nContent-Length: -1\r\n\r\n", nil},
	{"%[1]s %[2]s HTTP/1.1\r\n\r\n", nil},
	{"%[1]s %[2]s HTTP/1.0\r\n%[3]s\r\n", nil},
	{"%[1]s %[2]s HTTP/9.9\r\nHost: %[4]s\r\n\r\n", nil},
	{"%[1]s %[2]s HTTP/1.1\r\nHost: %[4]s\r\nX-Odd: \x00\r\n\r\n", nil},
	{"%[1]s %[2]s HTTP/1.1\r\nHost: %[4]s\r\nX Odd: 1\r\n\r\n", nil},
	{"%[1]s %[2]s HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", nil},
	{"%[1]s %[2]s%%zz HTTP/1.1\r\nHost: %[4]s\r\n\r\n", nil},
	{"%[1]s %[2]s/%%ff%%00 HTTP/1.1\r\nHost: %[4]s\r\n%[3]s\r\n", nil},
	{"%[1]s http://elsewhere%[2]s HTTP/1.1\r\nHost: %[4]s\r\n%[3]s\r\n", nil},
	{"OPTIONS * HTTP/1.1\r\nHost: %[4]s\r\n\r\n", nil},
	{"CONNECT localhost:1 HTTP/1.1\r\nHost: %[4]s\r\n\r\n", nil},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", nil},
	{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", nil},
}

// bad makes a request of one's own hand for an operation.
func (d *drawer) bad(o *operation, who caller) *request {
	r := d.valid(o)
	if d.ends(r) {
		return r
	}
	form := pick(d.Rand, crudes)
	key := ""
	if who.key != "" {
		key = "Authorization: Bearer " + who.key + "\r\n"
	}
	r.spoilt = "crude"
	text := fmt.Sprintf(form.text, r.method, r.url(""), key, d.host)
	text, _, _ = strings.Cut(text, "%!(EXTRA") // forms that name no operation
	r.raw = []byte(text)
	if len(o.contents) > 0 {
		r.wants = form.wants
	}
	return r
}

// crude sends bytes, ends what it sends, and reads an answer.
func (w *world) crude(ctx context.Context, r *request) (answer, error) {
	conn, err := w.dial(ctx)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return answer{}, err
		}
	}
	if _, err := conn.Write(r.raw); err != nil {
		return answer{}, err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return answer{}, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.method})
	if err != nil {
		return answer{}, errNoAnswer
	}
	defer response.Body.Close()
	a, err := read(response)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return a, errNoAnswer // a long answer is cut off when the server sees that the client has half-closed
	}
	return a, err
}

// errNoAnswer is the outcome of a request whose connection the server may close without an answer.
var errNoAnswer = fmt.Errorf("the server hung up")

// linger opens connections that send half a request and then nothing, until the test ends. Others must not notice.
func (w *world) linger(t testing.TB) (leave func()) {
	t.Helper()
	var all []net.Conn
	for i := range 40 {
		conn, err := w.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		half := "POST /v1/exec"
		if i%2 == 0 {
			half = "POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
		}
		if _, err := io.WriteString(conn, half); err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
	}
	return func() {
		for _, conn := range all {
			conn.Close()
		}
	}
}
