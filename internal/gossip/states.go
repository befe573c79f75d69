package gossip

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
)

// A push-pull is memberlist's exchange of everything two members know, over one stream. It is the only way to ask a
// memberlist about suspects and incarnations, and to tell it about members without a network. A request is
//
//	244 | len | label                       the label of the stream
//	6 | header | state, state, … | user     msgpack; header = how many states, how many bytes of user state
//
// and an answer the same without the label. With a secret key, what begins with the 6 is sealed:
//
//	10 | length u32 | 1 | nonce 12 | AES-GCM of it; authenticated beside it: the first five bytes and the label
const (
	messagePushPull  = 6
	messageEncrypted = 10
	sealVersion      = 1
	nonceBytes       = 12
	maxAnswer        = 64 << 20
	askTimeout       = 5 * time.Second
)

// The field names are memberlist's: msgpack goes by them.
type pushPullHeader struct {
	Nodes        int
	UserStateLen int
	Join         bool
}

// state is one member as memberlist knows it.
type state struct {
	Name        string
	Addr        []byte
	Port        uint16
	Meta        []byte
	Incarnation uint32
	State       memberlist.NodeStateType
	Vsn         []uint8
}

func (s *state) address() string { return hostPort(s.Addr, s.Port) }

// exchange tells the memberlist at the other end of conn what it should know, and returns what it knows. It closes conn.
func exchange(conn net.Conn, label string, key []byte, tell []state) ([]state, error) {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return nil, err
	}
	request, err := encodePushPull(tell)
	if err == nil && len(key) > 0 {
		request, err = seal(request, label, key)
	}
	if err != nil {
		return nil, err
	}
	header, err := memberlist.AddLabelHeaderToPacket(nil, label)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(header, request...)); err != nil {
		return nil, fmt.Errorf("ask for the members' states: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err == nil && len(key) > 0 {
		answer, err = unseal(answer, label, key)
	}
	if err != nil {
		return nil, fmt.Errorf("read the members' states: %w", err)
	}
	return decodePushPull(answer)
}

func encodePushPull(states []state) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte(messagePushPull)
	enc := codec.NewEncoder(&b, &codec.MsgpackHandle{})
	if err := enc.Encode(&pushPullHeader{Nodes: len(states)}); err != nil {
		return nil, err
	}
	for i := range states {
		if err := enc.Encode(&states[i]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func decodePushPull(b []byte) ([]state, error) {
	if len(b) == 0 || b[0] != messagePushPull {
		return nil, fmt.Errorf("read the members' states: %d bytes that are no push-pull", len(b))
	}
	dec := codec.NewDecoderBytes(b[1:], &codec.MsgpackHandle{})
	var h pushPullHeader
	if err := dec.Decode(&h); err != nil {
		return nil, err
	}
	if h.Nodes < 0 || h.Nodes > len(b) {
		return nil, fmt.Errorf("read the members' states: %d of them in %d bytes", h.Nodes, len(b))
	}
	states := make([]state, h.Nodes)
	for i := range states {
		if err := dec.Decode(&states[i]); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func seal(plain []byte, label string, key []byte) ([]byte, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	out := []byte{messageEncrypted}
	out = binary.BigEndian.AppendUint32(out, uint32(1+nonceBytes+len(plain)+gcm.Overhead()))
	beside := append(bytes.Clone(out), label...)
	nonce := make([]byte, nonceBytes)
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	out = append(out, sealVersion)
	out = append(out, nonce...)
	return gcm.Seal(out, nonce, plain, beside), nil
}

func unseal(b []byte, label string, key []byte) ([]byte, error) {
	const head = 5
	if len(b) < head+1+nonceBytes || b[0] != messageEncrypted || b[head] != sealVersion {
		return nil, fmt.Errorf("%d bytes that are not sealed", len(b))
	}
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	beside := append(bytes.Clone(b[:head]), label...)
	return gcm.Open(nil, b[head+1:head+1+nonceBytes], b[head+1+nonceBytes:], beside)
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
