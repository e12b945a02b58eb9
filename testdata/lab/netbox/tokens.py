"""Run by `netbox shell`: one user, a token that may write and one that may not.

Plaintext of a v2 token exists only in the object that made it, so it is written down here.
"""
import json
import os

from users.models import Token, User

user = User.objects.create_superuser('lab', 'lab@example.net', os.environ['ENROLL_LAB_NETBOX_PASSWORD'])
plain = {}
for name, write in (('token', True), ('readonly_token', False)):
    token = Token(user=user, version=2, write_enabled=write, description='lab ' + name)
    token.save()
    plain[name] = 'nbt_%s.%s' % (token.key, token.token)

with open(os.path.join(os.environ['NETBOX_ROOT'], 'tokens.json'), 'w') as file:
    json.dump(plain, file)
