package plan

import "context"

type permitKey struct{}

// WithPermit gives the runner of a step a last look at who holds the node. A
// runner whose own reads may take long (a slow BMC, an upload of several
// requests) asks right before the request that counts.
func WithPermit(ctx context.Context, permit func(context.Context) *Fault) context.Context {
	return context.WithValue(ctx, permitKey{}, permit)
}

// Permit asks whether the write may still be sent; nil when it may, or when
// nobody minds.
func Permit(ctx context.Context) *Fault {
	if permit, ok := ctx.Value(permitKey{}).(func(context.Context) *Fault); ok {
		return permit(ctx)
	}
	return nil
}
