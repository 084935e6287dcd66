// Package httpanswer holds what net/http leaves open about answering a request
// and more than one package has to decide alike: how to stay in the way of a
// flush, which status is not the answer yet, in which form a client wants to
// read of a failure, and how it is told when to come again.
//
// Each function is pure, or wraps its argument and keeps nothing else. What an
// answer says, and what happens when it begins, is up to the caller.
package httpanswer
