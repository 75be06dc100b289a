package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/tools/crash/history"
)

// Variables of a worker process, which is this program started again.
const (
	workerVariable  = "FF_CRASH_WORKER" // its name
	targetsVariable = "FF_CRASH_TARGETS"
	journalVariable = "FF_CRASH_JOURNAL"
	tokensVariable  = "FF_CRASH_TOKENS"
	seedVariable    = "FF_CRASH_SEED"
	homeVariable    = "FF_CRASH_HOME"
	keyVariable     = "FF_CRASH_KEY"
)

// monotonic is the host's clock, which all processes share and which does not jump.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it exists on every Linux
	return now.Nano()
}

// work runs a worker until it is killed, or its input ends.
func work(ctx context.Context, name string) error {
	journal, err := history.OpenJournal(os.Getenv(journalVariable), name, monotonic)
	if err != nil {
		return err
	}
	tokens, err := os.OpenFile(os.Getenv(tokensVariable), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		return err
	}
	home, err := strconv.Atoi(os.Getenv(homeVariable))
	if err != nil {
		return err
	}
	r := newRoad(strings.Split(os.Getenv(targetsVariable), ","), home, seed)
	client, err := flowfabric.Connect("http://server", flowfabric.ConnectConfig{Namespace: "default", APIKey: os.Getenv(keyVariable), HTTP: &http.Client{Transport: r}})
	if err != nil {
		return err
	}
	go reportRoad(ctx, journal, r)
	w := flowfabric.NewWorker(flowfabric.WrapWork(client, journaled(client, journal)), flowfabric.WorkerConfig{
		ID: "crash", Instance: name, Concurrency: 32, LeaseTTL: leaseTTL, DrainTimeout: time.Second,
	})
	h := &handlers{journal: journal, tokens: appender(tokens)}
	h.register(w)
	return w.Run(ctx)
}

// appender writes tokens to a file, each as one line.
func appender(file *os.File) func(token) error {
	var mu sync.Mutex
	return func(t token) error {
		mu.Lock()
		defer mu.Unlock()
		line, err := json.Marshal(t)
		if err != nil {
			return err
		}
		_, err = file.Write(append(line, '\n'))
		return err
	}
}

// journaled passes commands under leases on, and writes what was asked and answered.
func journaled(client *flowfabric.Client, journal *history.Journal) func(context.Context, ...api.WorkItem) ([]api.WorkAnswer, error) {
	return func(ctx context.Context, items ...api.WorkItem) ([]api.WorkAnswer, error) {
		calls := make([]history.Call, len(items))
		ends := make([]func(history.Call) error, len(items))
		for i, item := range items {
			calls[i] = callOf(item)
			end, err := journal.Begin(calls[i])
			if err != nil {
				return nil, err
			}
			ends[i] = end
		}
		answers, err := client.Work().Do(ctx, items...)
		for i, call := range calls {
			failure := err
			if err == nil {
				failure = answers[i].Err
			}
			call.Outcome, call.Code = outcomeOf(failure)
			if err := ends[i](call); err != nil {
				return nil, err
			}
		}
		return answers, err
	}
}

// callOf describes a command.
func callOf(item api.WorkItem) history.Call {
	call := history.Call{Name: string(item.Op), Execution: string(item.ID), Epoch: item.Lease.Epoch, Lease: item.Lease.ID, Key: item.RequestKey}
	switch item.Op {
	case api.OpStep:
		call.Key = item.Step
	case api.OpUsage:
		call.Key = item.Usage.DedupKey
	case api.OpComplete:
		call.Result = string(item.Result.Data)
	}
	return call
}

// outcomeOf returns what a caller knows after an error: what may be repeated may have taken effect.
func outcomeOf(err error) (history.Outcome, string) {
	switch code := flowfabric.CodeOf(err); {
	case err == nil:
		return history.Done, ""
	case code == "" || errors.Is(err, flowfabric.ErrOutcomeUnknown) || errors.Is(err, flowfabric.ErrUnavailable) || errors.Is(err, flowfabric.ErrInternal) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return history.Unknown, fmt.Sprint(code, " ", err)
	default:
		return history.Refused, code
	}
}

// roadCall is the name of a note with the counts of a transport: the number of commands without an answer, and of those sent twice.
const roadCall = "road"

// reportRoad notes the counts of the transport every second; the last ones before the process is killed may be missing.
func reportRoad(ctx context.Context, journal *history.Journal, r *road) {
	var unknown, duplicated int64
	for pause(ctx, time.Second) {
		nowUnknown, nowDuplicated := r.unknown.Load(), r.duplicated.Load()
		if nowUnknown != unknown || nowDuplicated != duplicated {
			_ = journal.Note(history.Call{Name: roadCall, Epoch: nowUnknown - unknown, Value: strconv.FormatInt(nowDuplicated-duplicated, 10)})
			unknown, duplicated = nowUnknown, nowDuplicated
		}
	}
}
