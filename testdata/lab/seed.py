#!/usr/bin/env python3
"""Fills an empty NetBox with the lab's site: racks, switches, a patch panel, the servers of fleet.py.
A second site, odd1, has twelve devices that are each recorded with one mistake, and two of one name.

usage: ENROLL_LAB_NETBOX_TOKEN=TOKEN seed.py URL [--missing]

With --missing the site odd1 is added to a NetBox that has the rest already, and nothing is done when it is there.

Lists are posted whole and answered in order, so ids are taken by position. Only the
standard library.
"""
import json
import os
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402

URL = sys.argv[1]
TOKEN = os.environ['ENROLL_LAB_NETBOX_TOKEN']

FRONTEND_TYPE = '200gbase-x-qsfp56'
NTP_SERVERS = ['192.0.2.123', 'ntp2.lab1.example.net']

# What all servers have in common; the address of a BMC stands in its local context.
IRONIC_SETTINGS = {
    'driver': 'redfish',
    'interface_type': FRONTEND_TYPE,
    'boot_interface': 'pxe',
    'deploy_interface': 'direct',
    'inspect_interface': 'agent',
    'management_interface': 'redfish',
    'network_interface': 'noop',
    'power_interface': 'redfish',
    'raid_interface': 'no-raid',
    'resource_class': 'baremetal.gpu',
    'cpu_arch': 'x86_64',
    'capabilities': {'boot_mode': 'uefi'},
}


def send(method, path, body):
    request = urllib.request.Request(
        '%s/api/%s/' % (URL, path), method=method, data=json.dumps(body).encode(),
        headers={'Authorization': 'Bearer ' + TOKEN, 'Content-Type': 'application/json', 'Accept': 'application/json'})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        sys.exit('%s %s: %d %s' % (method, path, error.code, error.read().decode(errors='replace')[:2000]))


def make(path, rows):
    """Creates objects in bulk; gives their ids in the order of the rows."""
    made = send('POST', path, rows)
    print('%-26s %4d' % (path, len(made)))
    return [row['id'] for row in made]


def by(keys, ids):
    return dict(zip(keys, ids))


def organisation():
    """Tags, custom fields, the site, kinds of devices; ids by slug."""
    make('extras/tags', [{'name': slug, 'slug': slug} for slug in ('ironic', 'ipmi_exporter')])
    make('extras/custom-fields', [
        {'name': 'platform_class', 'type': 'text', 'object_types': ['dcim.device']},
        {'name': 'gpu_type', 'type': 'text', 'object_types': ['dcim.devicetype']},
        {'name': 'device_class', 'type': 'text', 'object_types': ['dcim.devicerole']},
        {'name': 'ntp_servers', 'type': 'json', 'object_types': ['dcim.site']},
        {'name': 'syslog_servers', 'type': 'json', 'object_types': ['dcim.site']},
    ])
    ids = by(['site'], make('dcim/sites', [
        {'name': 'Lab 1', 'slug': fleet.SITE, 'status': 'active', 'custom_fields': {'ntp_servers': NTP_SERVERS}}]))
    ids |= by(['dell', 'lab-systems'], make('dcim/manufacturers', [
        {'name': 'Dell', 'slug': 'dell'}, {'name': 'Lab Systems', 'slug': 'lab-systems'}]))
    ids |= by(['poweredge-xe9680', 'lab-gpu-8', 'lab-leaf', 'lab-panel'], make('dcim/device-types', [
        {'manufacturer': ids['dell'], 'model': 'PowerEdge XE9680', 'slug': 'poweredge-xe9680', 'u_height': 6,
         'custom_fields': {'gpu_type': 'H100'}},
        {'manufacturer': ids['lab-systems'], 'model': 'Lab GPU 8', 'slug': 'lab-gpu-8', 'u_height': 8,
         'custom_fields': {'gpu_type': 'H100'}},
        {'manufacturer': ids['lab-systems'], 'model': 'Lab Leaf', 'slug': 'lab-leaf', 'u_height': 1},
        {'manufacturer': ids['lab-systems'], 'model': 'Lab Panel', 'slug': 'lab-panel', 'u_height': 1},
    ]))
    ids |= by(['gpu-compute', 'leaf', 'patch-panel'], make('dcim/device-roles', [
        {'name': 'GPU compute', 'slug': 'gpu-compute', 'custom_fields': {'device_class': 'COMPUTE_GPU'}},
        {'name': 'Leaf switch', 'slug': 'leaf'}, {'name': 'Patch panel', 'slug': 'patch-panel'}]))
    make('extras/config-contexts', [
        {'name': 'ironic settings of GPU servers', 'weight': 1000, 'is_active': True, 'roles': [ids['gpu-compute']],
         'data': {'ironic_settings': IRONIC_SETTINGS}}])
    return ids


def devices(ids):
    """Racks and everything in them; device ids by name."""
    servers = range(1, fleet.SERVERS + 1)
    racks = sorted({fleet.rack(i) for i in servers})
    rack_ids = by(racks, make('dcim/racks', [
        {'name': rack, 'site': ids['site'], 'u_height': 48, 'status': 'active'} for rack in racks]))

    def device(name, role, kind, rack, position, **more):
        return {'name': name, 'role': ids[role], 'device_type': ids[kind], 'site': ids['site'], 'rack': rack_ids[rack],
                'position': position, 'face': 'front', 'status': 'active', **more}

    rows = [device(leaf, 'leaf', 'lab-leaf', rack, 42 + n) for rack in racks for n, leaf in enumerate(fleet.leaves(rack))]
    rows.append(device('panel-' + fleet.rack(fleet.PATCHED[0]), 'patch-panel', 'lab-panel', fleet.rack(fleet.PATCHED[0]), 45))
    rows += [
        device(fleet.name(i), 'gpu-compute', 'poweredge-xe9680' if i % 2 else 'lab-gpu-8', fleet.rack(i), fleet.position(i),
               serial=fleet.serial(i), status='staged', local_context_data={'ironic_settings': {
                   'redfish_address_override': '%s/redfish/v1/Systems/%s' % (fleet.REDFISH, fleet.system(i))}})
        for i in servers]
    return by([row['name'] for row in rows], make('dcim/devices', rows))


def interfaces(ids):
    """Switch ports, NICs and BMCs; interface ids by (device, interface)."""
    rows = [{'device': ids[leaf], 'name': 'Ethernet1/%d' % n, 'type': FRONTEND_TYPE}
            for rack in sorted({fleet.rack(i) for i in range(1, fleet.SERVERS + 1)})
            for leaf in fleet.leaves(rack) for n in range(1, fleet.PER_RACK + 1)]
    for i in range(1, fleet.SERVERS + 1):
        device = ids[fleet.name(i)]
        rows.append({'device': device, 'name': 'bmc', 'type': '1000base-t', 'mgmt_only': True, 'mac_address': fleet.mac(i, 'bmc')})
        rows += [{'device': device, 'name': nic, 'type': FRONTEND_TYPE, 'mac_address': fleet.mac(i, nic)} for nic in fleet.FRONTEND]
    names = {number: name for name, number in ids.items()}
    return by([(names[row['device']], row['name']) for row in rows], make('dcim/interfaces', rows))


def addresses(site, device_ids, interface_ids):
    """The BMCs' addresses, which also become the devices' out-of-band addresses."""
    make('ipam/prefixes', [{'prefix': '192.0.2.0/24', 'status': 'active', 'scope_type': 'dcim.site', 'scope_id': site,
                            'description': 'BMCs'}])
    servers = range(1, fleet.SERVERS + 1)
    made = make('ipam/ip-addresses', [
        {'address': fleet.bmc_address(i) + '/24', 'status': 'active', 'assigned_object_type': 'dcim.interface',
         'assigned_object_id': interface_ids[fleet.name(i), 'bmc']} for i in servers])
    send('PATCH', 'dcim/devices', [{'id': device_ids[fleet.name(i)], 'oob_ip': address} for i, address in zip(servers, made)])


def cables(device_ids, interface_ids):
    def end(kind, number):
        return [{'object_type': 'dcim.' + kind, 'object_id': number}]

    def cable(a, b):
        return {'a_terminations': a, 'b_terminations': b, 'status': 'connected'}

    panel = device_ids['panel-' + fleet.rack(fleet.PATCHED[0])]
    rear, = make('dcim/rear-ports', [{'device': panel, 'name': 'rear1', 'type': 'mpo', 'positions': 1}])
    front, = make('dcim/front-ports', [
        {'device': panel, 'name': 'front1', 'type': 'mpo', 'rear_ports': [
            {'position': 1, 'rear_port': rear, 'rear_port_position': 1}]}])
    rows = []
    for i in range(1, fleet.SERVERS + 1):
        for nic in fleet.FRONTEND:
            here = end('interface', interface_ids[fleet.name(i), nic])
            there = end('interface', interface_ids[fleet.uplink(i, nic)])
            if (i, nic) == fleet.PATCHED:
                rows += [cable(here, end('frontport', front)), cable(end('rearport', rear), there)]
            else:
                rows.append(cable(here, there))
    make('dcim/cables', rows)


def find(path, query):
    request = urllib.request.Request('%s/api/%s/?%s' % (URL, path, query), headers={'Authorization': 'Bearer ' + TOKEN})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read())['results']


def planted():
    """The site odd1. The numbers are those of the test that wants a fault for each mistake."""
    numbers = range(1, 13)

    def name(n):
        return 'odd-%02d' % n

    def mac(n, k):
        return '02:0d:d0:00:%02x:%02x' % (n, k)

    role, = find('dcim/device-roles', 'slug=gpu-compute')
    leaf, = find('dcim/device-roles', 'slug=leaf')
    maker, = find('dcim/manufacturers', 'slug=lab-systems')
    site, = make('dcim/sites', [{'name': 'Odd 1', 'slug': 'odd1', 'status': 'active'}])
    rack, = make('dcim/racks', [{'name': 'o01', 'site': site, 'u_height': 48, 'status': 'active'}])
    tenants = make('tenancy/tenants', [{'name': t, 'slug': t} for t in ('odd-a', 'odd-b')])
    kind, blank, switch = make('dcim/device-types', [
        {'manufacturer': maker['id'], 'model': 'Odd GPU', 'slug': 'odd-gpu', 'u_height': 1, 'custom_fields': {'gpu_type': 'H100'}},
        {'manufacturer': maker['id'], 'model': 'Odd blank', 'slug': 'odd-blank', 'u_height': 1},
        {'manufacturer': maker['id'], 'model': 'Odd leaf', 'slug': 'odd-leaf', 'u_height': 1}])

    def server(n):
        row = {'name': name(n), 'role': role['id'], 'device_type': blank if n == 12 else kind, 'site': site, 'rack': rack,
               'serial': 'ODD%02d' % n, 'status': 'planned' if n == 7 else 'staged', 'position': 2 * n - 1, 'face': 'front',
               'local_context_data': {'ironic_settings': {'bond': {'mode': '802.3ad'}}}}
        if n == 6:  # a block ztp without a section infiniband
            row['local_context_data']['ztp'] = {}
        if n == 8:  # in the rack, nobody knows where
            del row['position'], row['face']
        return row

    twins = [{'name': 'odd-twin', 'role': role['id'], 'device_type': kind, 'site': site, 'status': 'staged', 'tenant': t} for t in tenants]
    made = make('dcim/devices', [server(n) for n in numbers] + twins + [
        {'name': 'odd-leaf', 'role': leaf['id'], 'device_type': switch, 'site': site, 'rack': rack, 'position': 42, 'face': 'front', 'status': 'active'}])
    ids, switch_id = by(numbers, made), made[-1]

    rows = [{'device': switch_id, 'name': 'Port-Channel%d' % n, 'type': 'lag'} for n in numbers]
    lags = by(numbers, make('dcim/interfaces', rows))

    def lag(n, k):
        return None if (n, k) == (3, 2) else lags[n]  # the LAG of one port is missing

    ends = [(n, k) for n in numbers for k in (1, 2)] + [(10, 3)]
    ports = by(ends, make('dcim/interfaces', [
        {'device': switch_id, 'name': 'Ethernet%d/%d' % (k, n), 'type': FRONTEND_TYPE, 'lag': lag(n, k) if k < 3 else None} for n, k in ends]))
    nics = [(n, k) for n in numbers for k in (0, 1, 2)]

    def nic(n, k):
        row = {'device': ids[n], 'name': ('bmc', 'eth0', 'eth1')[k], 'type': FRONTEND_TYPE if k else '1000base-t', 'mgmt_only': not k}
        if (n, k) == (11, 2):
            k = 1  # the MAC of the other NIC
        if (n, k) != (4, 0):
            row['mac_address'] = mac(n, k)
        return row

    interface = by(nics, make('dcim/interfaces', [nic(n, k) for n, k in nics]))
    # A MAC that was carried over and never marked primary.
    make('dcim/mac-addresses', [{'mac_address': mac(4, 0), 'assigned_object_type': 'dcim.interface', 'assigned_object_id': interface[4, 0]}])
    addresses = make('ipam/ip-addresses', [
        {'address': '203.0.113.%d/24' % (10 + n), 'status': 'active', 'assigned_object_type': 'dcim.interface',
         'assigned_object_id': interface[n, 1 if n == 5 else 0]} for n in numbers])
    send('PATCH', 'dcim/devices', [{'id': ids[n], 'oob_ip': address} for n, address in zip(numbers, addresses)])

    def end(number):
        return {'object_type': 'dcim.interface', 'object_id': number}

    def cable(n, k):
        far = [end(ports[{(1, 2): (2, 2), (2, 2): (1, 2)}.get((n, k), (n, k))])]  # the second cables of 1 and 2 are swapped
        if (n, k) == (10, 1):
            far.append(end(ports[10, 3]))
        return {'a_terminations': [end(interface[n, k])], 'b_terminations': far, 'status': 'planned' if (n, k) == (9, 1) else 'connected'}

    make('dcim/cables', [cable(n, k) for n in numbers for k in (1, 2)])


def main():
    if sys.argv[2:] == ['--missing']:
        if not find('dcim/sites', 'slug=odd1'):
            planted()
        return
    kinds = organisation()
    device_ids = devices(kinds)
    interface_ids = interfaces(device_ids)
    addresses(kinds['site'], device_ids, interface_ids)
    cables(device_ids, interface_ids)
    planted()


if __name__ == '__main__':
    main()
