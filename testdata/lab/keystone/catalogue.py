"""Puts an Ironic into Keystone's catalogue, once, and asks it for what only its conductor knows.

usage: catalogue.py KEYSTONE IRONIC, with the password of admin in ENROLL_LAB_KEYSTONE_PASSWORD
"""
import os
import sys

from keystoneauth1 import session
from keystoneauth1.identity import v3

keystone, ironic = sys.argv[1:]
admin = session.Session(auth=v3.Password(
    auth_url=keystone, username='admin', user_domain_id='default', password=os.environ['ENROLL_LAB_KEYSTONE_PASSWORD'],
    system_scope='all'))  # a project's administrator may not ask for drivers
if not admin.get(keystone + '/services?type=baremetal').json()['services']:
    service = admin.post(keystone + '/services', json={'service': {'type': 'baremetal', 'name': 'ironic'}}).json()['service']
    admin.post(keystone + '/endpoints', json={'endpoint': {
        'service_id': service['id'], 'interface': 'public', 'region_id': 'RegionOne', 'url': ironic}})
admin.get(ironic + '/v1/drivers/fake-hardware/properties', headers={'X-OpenStack-Ironic-API-Version': 'latest'})
