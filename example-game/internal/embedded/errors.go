package embedded

import "errors"

// What can be wrong with an order to break or mend a node. Match with errors.Is.
var (
	// ErrUnknownNode: the cluster has no node of that name.
	ErrUnknownNode = errors.New("embedded: unknown node")
	// ErrUnknownVerb: there is no such way to break or mend a node.
	ErrUnknownVerb = errors.New("embedded: unknown verb")
	// ErrWrongState: the node is in a state in which the verb means nothing.
	ErrWrongState = errors.New("embedded: wrong state")
)
