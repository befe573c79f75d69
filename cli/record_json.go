package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// recordDocument is a record as JSON. What consume -o jsonl prints, publish --in jsonl reads back without loss:
// null, empty and bytes that are not UTF-8 stay what they are.
type recordDocument struct {
	Topic     string           `json:"topic" col:"TOPIC,wide"`
	Range     string           `json:"range" col:"RANGE"`
	Offset    int64            `json:"offset" col:"OFFSET"`
	Timestamp term.Time        `json:"timestamp" col:"TIME" as:"stamp"`
	Key       term.Text        `json:"key,omitzero" col:"KEY" doc:"null for a record without key; absent when key_b64 or key_hex is there"`
	KeyB64    string           `json:"key_b64,omitempty" col:"KEY-B64,wide"`
	KeyHex    string           `json:"key_hex,omitempty"`
	Value     term.Text        `json:"value,omitzero" col:"VALUE" doc:"null for a tombstone; absent when value_b64 or value_hex is there"`
	ValueB64  string           `json:"value_b64,omitempty" col:"VALUE-B64,wide"`
	ValueHex  string           `json:"value_hex,omitempty"`
	Route     term.Text        `json:"routing_key,omitzero" doc:"absent when the key chose the range"`
	RouteB64  string           `json:"routing_key_b64,omitempty"`
	RouteHex  string           `json:"routing_key_hex,omitempty"`
	Headers   []headerDocument `json:"headers"`
	Epoch     int32            `json:"leader_epoch"`
	Bytes     int              `json:"value_bytes" col:"BYTES,wide"`
}

type headerDocument struct {
	Key      string    `json:"key"`
	Value    term.Text `json:"value,omitzero"`
	ValueB64 string    `json:"value_b64,omitempty"`
	ValueHex string    `json:"value_hex,omitempty"`
}

// binaryForm is --binary: how bytes that are not text appear in JSON.
type binaryForm string

const (
	binaryAuto binaryForm = "auto" // text when it is UTF-8, else b64
	binaryB64  binaryForm = "b64"
	binaryHex  binaryForm = "hex"
)

func newRecordDocument(m *sdk.Message, form binaryForm) recordDocument {
	doc := recordDocument{
		Topic: m.Topic, Range: m.Range.String(), Offset: m.Offset, Timestamp: term.Time{Time: m.Timestamp},
		Epoch: int32(m.LeaderEpoch), Bytes: len(m.Value), Headers: make([]headerDocument, len(m.Headers)),
	}
	doc.Key, doc.KeyB64, doc.KeyHex = form.encode(m.Key)
	doc.Value, doc.ValueB64, doc.ValueHex = form.encode(m.Value)
	if m.RoutingKey != nil {
		doc.Route, doc.RouteB64, doc.RouteHex = form.encode(m.RoutingKey)
	}
	for i, h := range m.Headers {
		d := &doc.Headers[i]
		d.Key = h.Key
		d.Value, d.ValueB64, d.ValueHex = form.encode(h.Value)
	}
	return doc
}

func (f binaryForm) encode(b []byte) (text term.Text, b64, hexed string) {
	switch {
	case b == nil:
		return term.Null(), "", ""
	case len(b) == 0 || f == binaryAuto && utf8.Valid(b):
		return term.String(string(b)), "", ""
	case f == binaryHex:
		return term.Text{}, "", hex.EncodeToString(b)
	}
	return term.Text{}, base64.StdEncoding.EncodeToString(b), ""
}

// inputDocument is what publish --in jsonl takes: any part of recordDocument that has a value. A missing one would be
// a tombstone, and a mistyped name is not to delete anything.
type inputDocument struct {
	Timestamp json.RawMessage `json:"timestamp"`
	Key       term.Text       `json:"key"`
	KeyB64    *string         `json:"key_b64"`
	KeyHex    *string         `json:"key_hex"`
	Route     term.Text       `json:"routing_key"`
	RouteB64  *string         `json:"routing_key_b64"`
	RouteHex  *string         `json:"routing_key_hex"`
	Value     json.RawMessage `json:"value"`
	ValueB64  *string         `json:"value_b64"`
	ValueHex  *string         `json:"value_hex"`
	Headers   json.RawMessage `json:"headers"`
}

// parseRecordJSON reads one line of jsonl. What it leaves out is taken from absent; a null is not left out.
func parseRecordJSON(line []byte, absent sdk.Record) (sdk.Record, error) {
	var in inputDocument
	var rec sdk.Record
	if err := json.Unmarshal(line, &in); err != nil {
		return rec, usagef("not a JSON record: %s", jsonFault(err))
	}
	if in.Value == nil && in.ValueB64 == nil && in.ValueHex == nil {
		return rec, usagef(`the record has no value`).WithHint(`{"key":"k","value":null} is a tombstone; value_b64 and value_hex take bytes`)
	}
	var err error
	if rec.Key, err = pickBytes("key", in.Key, in.KeyB64, in.KeyHex, absent.Key); err != nil {
		return rec, err
	}
	if rec.RoutingKey, err = pickBytes("routing_key", in.Route, in.RouteB64, in.RouteHex, absent.RoutingKey); err != nil {
		return rec, err
	}
	value, err := valueText(in.Value)
	if err != nil {
		return rec, err
	}
	if rec.Value, err = pickBytes("value", value, in.ValueB64, in.ValueHex, nil); err != nil {
		return rec, err
	}
	if rec.Timestamp, err = parseJSONTime(in.Timestamp); err != nil {
		return rec, err
	}
	if rec.Timestamp.IsZero() {
		rec.Timestamp = absent.Timestamp
	}
	rec.Headers, err = parseHeaders(in.Headers)
	return rec, err
}

// jsonFault is what is wrong with a document, without the Go types that it was read into.
func jsonFault(err error) string {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		what := strings.Trim(mistyped.Field, ".") // the path of a list's element begins with a period
		if what == "" {
			what = "it"
		}
		return what + " cannot be of type " + mistyped.Value
	}
	return err.Error()
}

// valueText is a JSON string's text; any other JSON value stands for itself, so that {"value":{"a":1}} works.
func valueText(raw json.RawMessage) (term.Text, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return term.Null(), nil
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return term.Null(), usagef("value: %v", err)
		}
	}
	return term.String(text), nil
}

// pickBytes is whichever form was given, or absent when none was.
func pickBytes(what string, text term.Text, b64, hexed *string, absent []byte) ([]byte, error) {
	var out []byte
	var err error
	switch {
	case b64 != nil:
		out, err = base64.StdEncoding.DecodeString(*b64)
	case hexed != nil:
		out, err = hex.DecodeString(*hexed)
	case text.IsZero():
		return absent, nil
	default:
		return text.Bytes(), nil
	}
	if err != nil {
		return nil, usagef("%s: %v", what, err)
	}
	if out == nil {
		out = []byte{}
	}
	return out, nil
}

// parseJSONTime takes RFC 3339 or milliseconds.
func parseJSONTime(raw json.RawMessage) (time.Time, error) {
	s := strings.Trim(string(bytes.TrimSpace(raw)), `"`)
	if s == "" || s == "null" {
		return time.Time{}, nil
	}
	t, err := term.ParseTime(s, time.Now().UTC())
	if err != nil {
		return t, usagef("timestamp: %v", err)
	}
	return t, nil
}

// parseHeaders takes the list form, which keeps order and repeats, or a plain object.
func parseHeaders(raw json.RawMessage) ([]sdk.Header, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '{' {
		return headersOfObject(raw)
	}
	var list []struct {
		Key      string    `json:"key"`
		Value    term.Text `json:"value"`
		ValueB64 *string   `json:"value_b64"`
		ValueHex *string   `json:"value_hex"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, usagef("headers: %s", jsonFault(err))
	}
	headers := make([]sdk.Header, len(list))
	for i, h := range list {
		v, err := pickBytes("header "+h.Key, h.Value, h.ValueB64, h.ValueHex, nil)
		if err != nil {
			return nil, err
		}
		headers[i] = sdk.Header{Key: h.Key, Value: v}
	}
	return headers, nil
}

// headersOfObject keeps the order of members as written, which a Go map would not.
func headersOfObject(raw []byte) ([]sdk.Header, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, usagef("headers: %s", jsonFault(err))
	}
	var headers []sdk.Header
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, usagef("headers: %s", jsonFault(err))
		}
		var value term.Text
		if err := dec.Decode(&value); err != nil {
			return nil, usagef("header %v: %s", key, jsonFault(err))
		}
		headers = append(headers, sdk.Header{Key: key.(string), Value: value.Bytes()})
	}
	return headers, nil
}
