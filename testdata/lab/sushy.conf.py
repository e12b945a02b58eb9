"""Configuration of sushy-emulator, which runs it as Python.

As shipped, the fake driver answers 501 for BIOS, processors and storage, and takes a
random time to switch power; what Ironic's redfish driver needs is filled in here. A
system as shipped has no serial number; this one gets those that NetBox records.
"""
import os
import sys

import jinja2

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402

from sushy_tools.emulator import main  # noqa: E402
from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver  # noqa: E402

_DIR = os.environ['ENROLL_LAB_REDFISH']

SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'
SUSHY_EMULATOR_LISTEN_PORT = int(os.environ['ENROLL_LAB_PORT'])
SUSHY_EMULATOR_STATE_DIR = _DIR + '/state'
SUSHY_EMULATOR_AUTH_FILE = _DIR + '/htpasswd'
SUSHY_EMULATOR_SSL_CERT = _DIR + '/server.pem'
SUSHY_EMULATOR_SSL_KEY = _DIR + '/server.key'
SUSHY_EMULATOR_FAKE_DRIVER = True
SUSHY_EMULATOR_FAKE_SYSTEMS = [
    {'uuid': fleet.system(i), 'name': fleet.name(i), 'power_state': 'Off', 'external_notifier': False,
     'nics': [{'mac': fleet.mac(i, nic), 'ip': ''} for nic in fleet.FRONTEND]}
    for i in range(1, fleet.SERVERS + fleet.SPARE + 1)
]


class _WithSerial(jinja2.BaseLoader):
    """Adds the serial number and the model behind the UUID of a system."""

    def __init__(self, shipped):
        self.shipped = shipped
        self.known = {fleet.system(i): (fleet.serial(i), *fleet.model(i)) for i in range(1, fleet.SERVERS + fleet.SPARE + 1)}

    def get_source(self, environment, template):
        source, path, fresh = self.shipped.get_source(environment, template)
        if template == 'system.json':
            environment.globals['lab_systems'] = self.known
            uuid = '"UUID": {{ uuid|string|tojson }},'
            serial = '"SerialNumber": {{ lab_systems[uuid|string][0]|tojson }}, "Model": {{ lab_systems[uuid|string][2]|tojson }},'
            assert uuid in source, 'the template of sushy-tools has changed'
            source = source.replace(uuid, uuid + '\n    ' + serial)
            maker = '"Manufacturer": "Sushy Emulator",'
            assert maker in source, 'the template of sushy-tools has changed'
            source = source.replace(maker, '"Manufacturer": {{ lab_systems[uuid|string][1]|tojson }},')
        return source, path, fresh


main.app.jinja_loader = _WithSerial(main.app.jinja_loader)

_BIOS = {'BootMode': 'Uefi', 'ProcTurboMode': 'Enabled', 'NicBoot1': 'NetworkBoot'}
_DISK = 960197124096


_shipped_set_power_state = FakeDriver.set_power_state


def _set_power_state(self, identity, state):
    """As shipped, refusals too, but due at once instead of after a random time."""
    _shipped_set_power_state(self, identity, state)
    system = self._get(identity)
    if system.get('pending_power'):
        self._update(system, pending_power={**system['pending_power'], 'apply_time': 0})


def _set_bios(self, identity, attributes):
    system = self._get(identity)
    self._update(system, bios={**system.get('bios', _BIOS), **attributes})


FakeDriver.set_power_state = _set_power_state
FakeDriver.set_bios = _set_bios
FakeDriver.get_bios = lambda self, i: self._get(i).get('bios', _BIOS)
FakeDriver.reset_bios = lambda self, i: self._update(i, bios=dict(_BIOS))
FakeDriver.get_versions = lambda self, i: self._get(i).get('versions', {'BiosVersion': '1.0.0'})
FakeDriver.set_versions = lambda self, i, versions: self._update(i, versions=versions)
FakeDriver.get_total_memory = lambda self, i: 1024
FakeDriver.get_total_cpus = lambda self, i: 2
FakeDriver.get_processors = lambda self, i: [
    {'id': 'CPU%d' % n, 'Id': 'CPU%d' % n, 'socket': 'CPU %d' % n, 'vendor': 'Lab', 'model': 'Lab CPU 9654',
     'cores': '96', 'threads': '192'} for n in (0, 1)]
FakeDriver.get_simple_storage_collection = lambda self, i: {
    'scsi': {'Id': 'scsi', 'Name': 'scsi', 'DeviceList': [{'Name': 'sda', 'CapacityBytes': _DISK}]}}

_uuids = [system['uuid'] for system in SUSHY_EMULATOR_FAKE_SYSTEMS]
SUSHY_EMULATOR_STORAGE = {u: [
    {'Id': '1', 'Name': 'Local Storage Controller', 'Drives': ['drv1'],
     'StorageControllers': [{'MemberId': '0', 'Name': 'HBA', 'SpeedGbps': 12}]}] for u in _uuids}
SUSHY_EMULATOR_DRIVES = {(u, '1'): [
    {'Id': 'drv1', 'Name': 'Drive', 'CapacityBytes': _DISK, 'Protocol': 'NVMe'}] for u in _uuids}
# Without it Volumes is a 500, and every inspection waits 29 s for it to get better.
SUSHY_EMULATOR_VOLUMES = {(u, '1'): [] for u in _uuids}
