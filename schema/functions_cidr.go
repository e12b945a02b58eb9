package schema

import (
	"errors"
	"math/big"
	"net"
	"net/netip"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// parseNetwork wants a network in CIDR form without bits beyond its prefix: a
// host's address with a prefix length is rarely what was meant.
func parseNetwork(v cty.Value, arg int) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(v.AsString())
	if err != nil {
		return p, function.NewArgErrorf(arg, "must be a network in CIDR form, for example \"192.0.2.0/24\"")
	}
	if p.Masked() != p {
		return p, function.NewArgErrorf(arg, "has bits set beyond its prefix length; the network is %q", p.Masked())
	}
	return p, nil
}

// wholeNumber wants a number that an address can be counted with.
func wholeNumber(v cty.Value, arg int) (*big.Int, error) {
	n, accuracy := v.AsBigFloat().Int(nil)
	if accuracy != big.Exact || n.BitLen() > 128 {
		return nil, function.NewArgErrorf(arg, "must be a whole number")
	}
	return n, nil
}

// addressAt is the address at a distance from the beginning of a network.
func addressAt(p netip.Prefix, distance *big.Int) netip.Addr {
	first := p.Addr().AsSlice()
	sum := new(big.Int).Add(new(big.Int).SetBytes(first), distance)
	addr, _ := netip.AddrFromSlice(sum.FillBytes(make([]byte, len(first)))) // the length is that of an address
	return addr
}

var cidrHostFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "network", Type: cty.String}, {Name: "number", Type: cty.Number}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parseNetwork(args[0], 0)
		if err != nil {
			return cty.NilVal, err
		}
		n, err := wholeNumber(args[1], 1)
		if err != nil {
			return cty.NilVal, err
		}
		size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
		if n.Sign() < 0 {
			n = new(big.Int).Add(size, n)
		}
		if n.Sign() < 0 || n.Cmp(size) >= 0 {
			return cty.NilVal, function.NewArgErrorf(1, "is beyond the network, which has %s addresses", size)
		}
		return cty.StringVal(addressAt(p, n).String()), nil
	},
})

var cidrSubnetFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "network", Type: cty.String}, {Name: "bits", Type: cty.Number}, {Name: "number", Type: cty.Number}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parseNetwork(args[0], 0)
		if err != nil {
			return cty.NilVal, err
		}
		bits, err := wholeNumber(args[1], 1)
		if err != nil {
			return cty.NilVal, err
		}
		n, err := wholeNumber(args[2], 2)
		if err != nil {
			return cty.NilVal, err
		}
		left := p.Addr().BitLen() - p.Bits()
		if bits.Sign() < 0 || bits.Cmp(big.NewInt(int64(left))) > 0 {
			return cty.NilVal, function.NewArgErrorf(1, "must be a number from 0 to %d", left)
		}
		more := int(bits.Int64())
		if n.Sign() < 0 || n.BitLen() > more {
			return cty.NilVal, function.NewArgErrorf(2, "does not fit into %d bits", more)
		}
		distance := new(big.Int).Lsh(n, uint(left-more))
		return cty.StringVal(netip.PrefixFrom(addressAt(p, distance), p.Bits()+more).String()), nil
	},
})

var cidrNetmaskFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "network", Type: cty.String}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parseNetwork(args[0], 0)
		if err != nil {
			return cty.NilVal, err
		}
		if !p.Addr().Is4() {
			return cty.NilVal, errors.New("IPv6 networks have no mask; use cidrprefix")
		}
		return cty.StringVal(net.IP(net.CIDRMask(p.Bits(), 32)).String()), nil
	},
})

var cidrPrefixFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "network", Type: cty.String}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parseNetwork(args[0], 0)
		return cty.NumberIntVal(int64(p.Bits())), err
	},
})

var cidrContainsFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "network", Type: cty.String}, {Name: "address", Type: cty.String}},
	Type:   function.StaticReturnType(cty.Bool),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parseNetwork(args[0], 0)
		if err != nil {
			return cty.NilVal, err
		}
		text := args[1].AsString()
		if other, err := netip.ParsePrefix(text); err == nil {
			return cty.BoolVal(other.Bits() >= p.Bits() && p.Contains(other.Addr())), nil
		}
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(1, "must be an address or a network")
		}
		return cty.BoolVal(p.Contains(addr)), nil
	},
})
