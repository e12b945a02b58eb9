"""The lab's fleet, said once: NetBox, the BMC emulator and the played ramdisk agree by it."""

SERVERS = 24
SPARE = 6  # systems that the BMC emulator has beyond the servers in NetBox
SITE = 'lab1'
FRONTEND = ('eth0', 'eth1')
NICS = ('bmc', *FRONTEND)
PER_RACK = 5
# The cable of this NIC runs through a patch panel.
PATCHED = (5, 'eth1')
# Stands in the seeded database where a run puts the address of its Redfish emulator.
REDFISH = 'https://redfish.lab.invalid'


def name(i):
    return 'gpu-%03d' % i


def serial(i):
    return 'LAB%05d' % i


def model(i):
    """Manufacturer and model of a server."""
    return ('Dell', 'PowerEdge XE9680') if i % 2 else ('Lab Systems', 'Lab GPU 8')


def system(i):
    """The UUID of a server's Redfish system."""
    return '00000000-0000-4000-8000-%012d' % i


def mac(i, nic):
    """A locally administered address: server and NIC by number."""
    return '02:1a:b0:00:%02x:%02x' % (i, NICS.index(nic))


def bmc_address(i):
    return '192.0.2.%d' % (10 + i)


def rack(i):
    return 'r%02d' % ((i - 1) // PER_RACK + 1)


def position(i):
    return 1 + 8 * ((i - 1) % PER_RACK)


def leaves(rack_name):
    """The two switches of a rack, one for each frontend NIC of its servers."""
    return ['leaf-%s-%d' % (rack_name, n + 1) for n in range(len(FRONTEND))]


def uplink(i, nic):
    """The switch and the port that a frontend NIC is cabled to."""
    return leaves(rack(i))[FRONTEND.index(nic)], 'Ethernet1/%d' % ((i - 1) % PER_RACK + 1)


def chassis_mac(switch):
    """The MAC by which a switch names itself: rack and switch by number, from leaf-rRR-N."""
    return bytes([0x02, 0x1a, 0xb0, 0xff, int(switch[6:8]), int(switch[9:])])


def tlv(kind, payload):
    """One LLDP TLV as the ramdisk reports it: type and hex."""
    return [kind, payload.hex()]


def lldp(switch, port):
    return [
        tlv(1, b'\x04' + chassis_mac(switch)),  # chassis id, a MAC
        tlv(2, b'\x05' + port.encode()),        # port id, an interface name
        tlv(3, b'\x00\x78'),                    # time to live, 120 s
        tlv(4, port.encode()),                  # port description
        tlv(5, switch.encode()),                # system name
        tlv(0, b''),                            # the end
    ]


def inspection_data(i):
    """What the ramdisk of a healthy server posts."""
    manufacturer, product = model(i)
    interfaces = [
        {'name': nic, 'mac_address': mac(i, nic), 'ipv4_address': None, 'ipv6_address': None, 'has_carrier': True,
         'vendor': '0x15b3', 'product': '0x1021', 'pci_address': '0000:%02x:00.0' % (0x17 + n), 'speed_mbps': 200000,
         'lldp': None, 'client_id': None, 'biosdevname': None}
        for n, nic in enumerate(FRONTEND)
    ]
    disks = [
        {'name': '/dev/nvme%dn1' % n, 'model': 'LAB NVMe 960', 'size': 960197124096, 'rotational': False,
         'serial': '%sD%d' % (serial(i), n), 'wwn': None, 'vendor': None, 'hctl': None, 'by_path': None,
         'wwn_with_extension': None, 'wwn_vendor_extension': None, 'logical_sectors': 512, 'physical_sectors': 512}
        for n in range(2)
    ]
    return {
        'inventory': {
            'interfaces': interfaces,
            'cpu': {'model_name': 'Lab CPU 9654', 'frequency': '3700.0', 'count': 384, 'architecture': 'x86_64',
                    'flags': [], 'socket_count': 2},
            'disks': disks,
            'memory': {'total': 1 << 40, 'physical_mb': 1 << 20},
            'bmc_address': bmc_address(i), 'bmc_v6address': '::/0', 'bmc_mac': mac(i, 'bmc'),
            'system_vendor': {'product_name': product, 'serial_number': serial(i), 'manufacturer': manufacturer,
                              'firmware': {'vendor': 'Lab', 'version': '1.0.0', 'build_date': '01/01/2026'}},
            'boot': {'current_boot_mode': 'uefi', 'pxe_interface': mac(i, 'eth0')},
            'hostname': 'localhost.localdomain',
        },
        'root_disk': disks[0],
        'boot_interface': mac(i, 'eth0'),
        'lldp_raw': {nic: lldp(*uplink(i, nic)) for nic in FRONTEND},
        'pci_devices': [
            {'vendor_id': '10de', 'product_id': '2330', 'class': '030200', 'revision': 'a1',
             'bus': '0000:%02x:00.0' % (0x40 + n)} for n in range(8)
        ],
    }
