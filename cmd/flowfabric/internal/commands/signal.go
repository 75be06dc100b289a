package commands

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// tokenVariable provides a token without leaving it in a shell's history.
const tokenVariable = "FLOWFABRIC_TOKEN"

// signalFlags are the flags of signal (U173).
type signalFlags struct {
	name, token, tokenFile           string
	payload, file, text, contentType string
	category, sourceType, source     string
	correlation, key, id, execution  string
	fs                               *pflag.FlagSet
}

func (f *signalFlags) register(fs *pflag.FlagSet) {
	f.fs = fs
	fs.StringVar(&f.name, "name", "", "name of the signal, such as approved")
	fs.StringVar(&f.token, "token", "", "token of the waitpoint; better by --token-file or "+tokenVariable)
	fs.StringVar(&f.tokenFile, "token-file", "", "file that contains the token, or - for standard input")
	fs.StringVar(&f.payload, "payload", "", "payload as JSON: the value, @file, or - for standard input")
	fs.StringVar(&f.text, "text", "", "payload as text: the value, @file or -")
	fs.StringVar(&f.file, "payload-file", "", "file with the payload as bytes, or -")
	fs.StringVar(&f.contentType, "content-type", "", "content type of the payload")
	fs.StringVar(&f.category, "category", "", "category of the signal; default external")
	fs.StringVar(&f.sourceType, "source-type", "", "type of the sender; default external")
	fs.StringVar(&f.source, "source-identity", "", "identity of the sender; conditions that count sources compare it")
	fs.StringVar(&f.correlation, "correlation-id", "", "correlation id of your own")
	fs.StringVar(&f.key, "idempotency-key", "", "idempotency key: a second signal with it is a duplicate")
	fs.StringVar(&f.id, "signal-id", "", "id of the signal, also idempotent; generated if absent")
	fs.StringVar(&f.execution, "execution", "", "refuse unless the waitpoint belongs to this execution")
}

func (s *session) signal() *cobra.Command {
	var flags signalFlags
	cmd := s.command("signal WAITPOINT", "Send a signal to a waitpoint; the waitpoint's token is the credential", `
flowfabric signal 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --name approved --token-file token.txt
flowfabric signal 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --name paid --payload '{"amount": 12}' --idempotency-key payment-17 --token-file token.txt
flowfabric signal 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --name note --text 'all is well' --source-identity ana --token-file token.txt
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		signal, err := s.signalOf(&flags, args[0])
		if err != nil {
			return err
		}
		receipt, err := c.Signal(ctx, signal)
		if err != nil {
			return err
		}
		return s.printReceipt(receipt)
	})
	flags.register(cmd.Flags())
	cmd.ValidArgsFunction = s.completeWaitpoints
	return cmd
}

// signalOf creates a signal from the flags.
func (s *session) signalOf(f *signalFlags, waitpoint string) (flowfabric.Signal, error) {
	signal := flowfabric.Signal{
		WaitpointID: waitpoint, ExecutionID: flowfabric.ID(f.execution), Name: f.name, SourceType: f.sourceType, SourceIdentity: f.source,
		CorrelationID: f.correlation, IdempotencyKey: f.key, SignalID: f.id, Category: changed(f.fs, "category", f.category),
	}
	if f.name == "" {
		return signal, show.Invalid("--name", "flowfabric waitpoints get "+waitpoint+" shows the expected names", "the name of the signal is missing")
	}
	if f.tokenFile == "-" && (f.payload == "-" || f.text == "-" || f.file == "-") {
		return signal, show.Invalid("--token-file", "put one of them into a file", "token and payload cannot both come from standard input")
	}
	token, err := s.token(f)
	if err != nil {
		return signal, err
	}
	signal.Token = flowfabric.TokenOf(token)
	file := f.file
	if file != "" && file != "-" {
		file = "@" + file
	}
	signal.Payload, err = s.payload(f.contentType,
		payloadSource{"--payload", f.payload, jsonType}, payloadSource{"--text", f.text, textType}, payloadSource{"--payload-file", file, bytesType})
	return signal, err
}

// token reads the token from the flag, from a file or from the environment.
func (s *session) token(f *signalFlags) (string, error) {
	switch {
	case f.token != "" && f.tokenFile != "":
		return "", show.Invalid("--token", "give one of them", "--token and --token-file cannot be combined")
	case f.token != "":
		return f.token, nil
	case f.tokenFile == "":
		return s.tokenFrom(tokenVariable, strings.TrimSpace(s.lookup(tokenVariable)))
	}
	read := os.ReadFile
	if f.tokenFile == "-" {
		read = func(string) ([]byte, error) { return io.ReadAll(s.In) }
	}
	data, err := read(f.tokenFile)
	if err != nil {
		return "", show.Invalid("--token-file", "", "%s", err)
	}
	return s.tokenFrom("--token-file", strings.TrimSpace(string(data)))
}

// tokenFrom requires a token.
func (s *session) tokenFrom(source, token string) (string, error) {
	if token != "" {
		return token, nil
	}
	return "", show.Invalid(source, "give --token-file or set "+tokenVariable+"; operators can read it with flowfabric token WAITPOINT", "the token is missing")
}

// printReceipt shows the outcome of a signal, and says if it had no effect.
func (s *session) printReceipt(receipt api.SignalReceipt) error {
	type x = api.SignalReceipt
	err := show.One(s.printer, show.View[x]{ID: func(r x) string { return r.SignalID }, Columns: []show.Column[x]{
		{Name: "SIGNAL", Text: func(r x) string { return r.SignalID }},
		{Name: "OUTCOME", Text: func(r x) string { return r.Outcome }},
		{Name: "EFFECT", Text: func(r x) string { return r.Effect }},
	}}, receipt)
	s.noteEffect(receipt)
	return err
}

// noteEffect prints a note if a signal changed nothing.
func (s *session) noteEffect(receipt api.SignalReceipt) {
	switch {
	case receipt.Outcome == "duplicate" && !receipt.SameRequest:
		s.printer.Note("another signal with this key was accepted before; this one was discarded")
	case receipt.Outcome == "duplicate":
		s.printer.Note("it was accepted before")
	case strings.HasPrefix(receipt.Effect, "signal_ignored"):
		s.printer.Note("it is stored, but the execution does not wait for it")
	}
}
