"""Configuration of the lab's NetBox; what differs by start comes from the environment.

The secrets lie beside the database dump: it holds token digests made with this pepper.
"""
import json
import os

with open(os.path.join(os.environ['NETBOX_ROOT'], 'secrets.json')) as _file:
    _secrets = json.load(_file)
_scratch = os.environ['ENROLL_LAB_SCRATCH']

ALLOWED_HOSTS = ['127.0.0.1', 'localhost']
SECRET_KEY = _secrets['secret_key']
API_TOKEN_PEPPERS = {1: _secrets['pepper']}
DATABASES = {
    'default': {
        'NAME': 'netbox',
        'USER': 'postgres',
        'HOST': _scratch + '/pg',
        'CONN_MAX_AGE': 300,
    },
}
REDIS = {
    name: {'URL': 'unix://%s/redis.sock?db=%d' % (_scratch, number), 'DATABASE': number, 'SSL': False}
    for number, name in enumerate(('tasks', 'caching'))
}
# No counting of releases at home, no look at the network.
CENSUS_REPORTING_ENABLED = False
RELEASE_CHECK_URL = None
CHANGELOG_RETENTION = 0
