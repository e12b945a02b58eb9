package netbox

import (
	"context"
	"math"
	"net/http"

	upstream "github.com/netbox-community/go-netbox/v4"

	"github.com/enroll-dev/enroll/plan"
)

// requests builds requests with go-netbox. Its methods return only the error
// of sending: the answer is in the call of the context.
type requests struct{ api *upstream.APIClient }

func newRequests(base string, client *http.Client) *requests {
	cfg := upstream.NewConfiguration()
	cfg.Servers = upstream.ServerConfigurations{{URL: base}}
	cfg.HTTPClient = client
	return &requests{api: upstream.NewAPIClient(cfg)}
}

// Every list is ordered by id: without an order pages may overlap.
const (
	pageSize  = 1000
	listOrder = "id"
)

func (r *requests) sites(ctx context.Context, slug string, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimSitesList(ctx).Slug([]string{slug}).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) rolesBySlug(ctx context.Context, slugs []string, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimDeviceRolesList(ctx).Slug(slugs).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) devicesByName(ctx context.Context, site string, names []string, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimDevicesList(ctx).Site([]string{site}).Name(names).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

// selector is what devices of a site are filtered by.
type selector struct {
	site     string
	roleIDs  []string
	rackIDs  []int32  // any of them
	statuses []string // any of them
	tags     []string // slugs; all of them
}

func (r *requests) devicesBy(ctx context.Context, sel selector, offset int32) error {
	q := r.api.DcimAPI.DcimDevicesList(ctx).Site([]string{sel.site}).RoleId(sel.roleIDs)
	if len(sel.rackIDs) > 0 {
		q = q.RackId(sel.rackIDs)
	}
	if len(sel.statuses) > 0 {
		q = q.Status(sel.statuses)
	}
	if len(sel.tags) > 0 {
		q = q.Tag(sel.tags)
	}
	_, resp, err := q.Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) devicesByID(ctx context.Context, ids []int32, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimDevicesList(ctx).Id(ids).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) deviceTypes(ctx context.Context, ids []int32, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimDeviceTypesList(ctx).Id(ids).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) devicesOfSite(ctx context.Context, site string, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimDevicesList(ctx).Site([]string{site}).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) interfacesByMAC(ctx context.Context, site string, macs []string, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimInterfacesList(ctx).Site([]string{site}).MacAddress(macs).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) interfacesOfRoles(ctx context.Context, site string, roleIDs []int32, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimInterfacesList(ctx).Site([]string{site}).DeviceRoleId(roleIDs).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

// interfacesOfOthers are those of devices of no such role whose MAC begins so.
func (r *requests) interfacesOfOthers(ctx context.Context, site string, roleIDs []int32, prefixes []string, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimInterfacesList(ctx).Site([]string{site}).DeviceRoleIdN(roleIDs).MacAddressIsw(prefixes).
		Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) cabledOf(ctx context.Context, deviceIDs []int32, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimInterfacesList(ctx).DeviceId(deviceIDs).Cabled(true).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) addressesIn(ctx context.Context, networks []string, offset int32) error {
	_, resp, err := r.api.IpamAPI.IpamIpAddressesList(ctx).Parent(networks).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) addressesByHost(ctx context.Context, hosts []string, offset int32) error {
	_, resp, err := r.api.IpamAPI.IpamIpAddressesList(ctx).Address(hosts).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) interfacesOf(ctx context.Context, deviceIDs []int32, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimInterfacesList(ctx).DeviceId(deviceIDs).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) interfacesByID(ctx context.Context, ids []int32, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimInterfacesList(ctx).Id(ids).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) addressesByID(ctx context.Context, ids []int32, offset int32) error {
	_, resp, err := r.api.IpamAPI.IpamIpAddressesList(ctx).Id(ids).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) tagsBySlug(ctx context.Context, slugs []string, offset int32) error {
	_, resp, err := r.api.ExtrasAPI.ExtrasTagsList(ctx).Slug(slugs).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) tags(ctx context.Context, offset int32) error {
	_, resp, err := r.api.ExtrasAPI.ExtrasTagsList(ctx).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) racks(ctx context.Context, site string, offset int32) error {
	_, resp, err := r.api.DcimAPI.DcimRacksList(ctx).Site([]string{site}).Limit(pageSize).Offset(offset).Ordering(listOrder).Execute()
	return finish(resp, err)
}

func (r *requests) device(ctx context.Context, id int32) error {
	_, resp, err := r.api.DcimAPI.DcimDevicesRetrieve(ctx, id).Execute()
	return finish(resp, err)
}

// change is the body of a PATCH of a device: only what is set is sent.
type change struct {
	status  string
	addTag  string         // slug; from NetBox 4.6
	allTags []int64        // before 4.6: the whole list, by id
	fields  map[string]any // custom fields; the others stay
	message string         // note in the change log
}

func (r *requests) patchDevice(ctx context.Context, id int32, ch change) error {
	body := upstream.PatchedWritableDeviceWithConfigContextRequest{AdditionalProperties: map[string]any{}}
	if ch.status != "" {
		body.Status = (*upstream.DeviceStatusValue)(&ch.status)
	}
	// go-netbox knows neither add_tags nor tags by id nor the note; what stands
	// in AdditionalProperties is sent as it is.
	if ch.addTag != "" {
		body.AdditionalProperties["add_tags"] = []map[string]string{{"slug": ch.addTag}}
	}
	if ch.allTags != nil {
		body.AdditionalProperties["tags"] = ch.allTags
	}
	if ch.fields != nil {
		body.CustomFields = ch.fields
	}
	if ch.message != "" {
		body.AdditionalProperties["changelog_message"] = ch.message
	}
	_, resp, err := r.api.DcimAPI.DcimDevicesPartialUpdate(ctx, id).PatchedWritableDeviceWithConfigContextRequest(body).Execute()
	return finish(resp, err)
}

func finish(resp *http.Response, err error) error {
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // an empty body of our own transport
	}
	return err
}

// narrow makes the 32-bit ids that go-netbox takes.
func narrow(ids []int64) ([]int32, error) {
	out := make([]int32, len(ids))
	for i, id := range ids {
		if id <= 0 || id > math.MaxInt32 {
			return nil, plan.NewFault(plan.CodeNetBoxProtocol, "NetBox has an object with the id %d, outside of what its API client can ask for", id)
		}
		out[i] = int32(id)
	}
	return out, nil
}
