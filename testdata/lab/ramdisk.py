#!/usr/bin/env python3
"""Plays the ramdisk (ironic-python-agent) of every node of the lab's Ironic.

usage: ramdisk.py IRONIC_URL DIRECTORY PORT_FILE

Inspection. A node in `inspect wait` gets DIRECTORY/NODE.json posted to
continue_inspection, byte for byte what a test put there. No file: the ramdisk stays
silent, as one that never booted. The key "lab_delay" (seconds, at the top) is taken
out and waited for first. A body that Ironic refuses is not sent again until the file
changes.

Cleaning. A node in `clean wait` with power on and an agent deploy interface is
heartbeated for, and its clean steps are answered. DIRECTORY/NODE.clean.json changes that:
  {"steps": [...]}             clean steps instead of the three below
  {"fail": {"STEP": "text"}}   that step fails with the text
  {"silent": true}             no heartbeat at all
Only the standard library; loopback only.
"""
import http.server
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

POLL = 0.5
HEARTBEAT = 0.4

STEPS = [
    {'interface': 'deploy', 'step': 'erase_devices_metadata', 'priority': 99, 'reboot_requested': False, 'abortable': True},
    {'interface': 'raid', 'step': 'delete_configuration', 'priority': 0, 'reboot_requested': False, 'abortable': True},
    {'interface': 'raid', 'step': 'create_configuration', 'priority': 0, 'reboot_requested': False, 'abortable': True},
]


def log(text, *args):
    print(time.strftime('%H:%M:%S'), text % args)


def read_json(path):
    """A file of a test, or None when it is missing or half written."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


class Ironic:
    def __init__(self, url):
        self.url = url

    def call(self, method, path, body=None):
        """Status and decoded body; 0 when nobody answers."""
        request = urllib.request.Request(
            self.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={'Content-Type': 'application/json', 'Accept': 'application/json',
                     'X-OpenStack-Ironic-API-Version': 'latest'})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                raw = answer.read()
                return answer.status, json.loads(raw) if raw else None
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors='replace')
        except (OSError, ValueError) as error:
            return 0, str(error)


class Agent:
    """One boot of the ramdisk on one node, from the first heartbeat to power off."""

    def __init__(self, ironic, node, directory, callback):
        self.ironic = ironic
        self.uuid = node['uuid']
        self.name = node['name'] or self.uuid
        self.settings_file = os.path.join(directory, self.name + '.clean.json')
        self.callback = callback
        self.token = None
        self.result = None  # of the step that was asked for last
        self.alive = True

    def settings(self):
        return read_json(self.settings_file) or {}

    def run(self):
        if self.settings().get('silent'):
            self.alive = False
            return
        status, body = self.ironic.call('GET', '/v1/lookup?node_uuid=' + self.uuid)
        token = body['config'].get('agent_token') if status == 200 else None
        if not token or token.startswith('*'):
            # Ironic gives the token once per boot; somebody else has it.
            log('%s: no agent token (%s); only an abort helps this boot', self.name, status)
            time.sleep(3)
            self.alive = False
            return
        self.token = token
        log('%s: ramdisk is up', self.name)
        heartbeat = {'callback_url': self.callback + self.uuid, 'agent_version': '11.0.0', 'agent_token': token}
        while True:
            status, body = self.ironic.call('POST', '/v1/heartbeat/' + self.uuid, heartbeat)
            # 409 is a lock and passes; any other refusal means that this boot is over.
            if status not in (202, 409):
                log('%s: ramdisk is gone (heartbeat %s)', self.name, status)
                break
            time.sleep(HEARTBEAT)
        self.alive = False

    def command(self, request):
        """Answer one command that the conductor posts."""
        name = request.get('name', '')
        params = request.get('params') or {}
        short = name.split('.')[-1]
        if name == 'clean.get_clean_steps':
            steps = self.settings().get('steps', STEPS)
            return self.answer(short, 'SUCCEEDED', {
                'clean_steps': {'GenericHardwareManager': steps},
                'hardware_manager_version': {'generic_hardware_manager': '1.2'}})
        if name == 'clean.execute_clean_step':
            step = params.get('step') or {}
            log('%s: %s.%s', self.name, step.get('interface'), step.get('step'))
            text = self.settings().get('fail', {}).get(step.get('step'))
            if text:
                self.result = self.answer(short, 'FAILED', None, {
                    'type': 'CleaningError', 'code': 500, 'message': 'Clean step failed: ' + text, 'details': text})
            else:
                done = 'done'
                if step.get('step') == 'create_configuration':
                    # Ironic takes what comes back for the RAID configuration of the node.
                    done = (params.get('node') or {}).get('target_raid_config') or {}
                self.result = self.answer(short, 'SUCCEEDED', {'clean_result': done, 'clean_step': step})
            # The conductor asks again after the next heartbeat.
            return self.answer(short, 'RUNNING', None)
        return self.answer(short, 'SUCCEEDED', {})

    @staticmethod
    def answer(name, status, result, error=None):
        return {'command_name': name, 'command_status': status, 'command_error': error, 'command_result': result}


class Callback(http.server.BaseHTTPRequestHandler):
    """The agent's own API, for all nodes: /UUID/v1/commands."""
    agents = {}
    protocol_version = 'HTTP/1.1'

    def handle_command(self):
        length = int(self.headers.get('Content-Length') or 0)
        raw = self.rfile.read(length)
        agent = self.agents.get(self.path.split('/')[1])
        if agent is None:
            return self.reply(404, {'faultstring': 'no ramdisk runs on this node'})
        if self.command == 'POST':
            return self.reply(200, agent.command(json.loads(raw or b'{}')))
        return self.reply(200, {'commands': [agent.result] if agent.result else []})

    do_GET = do_POST = handle_command

    def reply(self, status, body):
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args):
        pass


class Inspection:
    """Posts inventories; remembers per node what was posted, so that none goes twice."""

    def __init__(self, ironic, directory):
        self.ironic = ironic
        self.directory = directory
        self.waiting = {}  # uuid: when inspect wait was first seen
        self.settled = {}  # uuid: version of the file that was accepted or refused

    def forget(self, uuid):
        self.waiting.pop(uuid, None)
        self.settled.pop(uuid, None)

    def step(self, node):
        uuid = node['uuid']
        began = self.waiting.setdefault(uuid, time.monotonic())
        path = os.path.join(self.directory, '%s.json' % (node['name'] or uuid))
        data = read_json(path)
        if data is None:
            return
        version = os.stat(path).st_mtime_ns
        if self.settled.get(uuid) == version or time.monotonic() - began < data.pop('lab_delay', 0):
            return
        status, body = self.ironic.call('POST', '/v1/continue_inspection?node_uuid=' + uuid, data)
        log('%s: inventory posted: %s %s', node['name'], status, '' if status == 202 else body)
        if status not in (0, 409, 503):
            self.settled[uuid] = version


def main():
    url, directory, port_file = sys.argv[1:4]
    ironic = Ironic(url)
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Callback)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    callback = 'http://127.0.0.1:%d/' % server.server_address[1]
    with open(port_file, 'w') as file:
        print(server.server_address[1], file=file)

    agents = Callback.agents
    inspection = Inspection(ironic, directory)
    while True:
        status, body = ironic.call('GET', '/v1/nodes?fields=uuid,name,provision_state,power_state,deploy_interface&limit=1000')
        for node in body['nodes'] if status == 200 else []:
            uuid, state = node['uuid'], node['provision_state']
            if state == 'inspect wait':
                inspection.step(node)
            elif state != 'inspecting':
                inspection.forget(uuid)
            running = uuid in agents and agents[uuid].alive
            if state == 'clean wait' and node['power_state'] == 'power on' and node['deploy_interface'] != 'fake' and not running:
                agents[uuid] = Agent(ironic, node, directory, callback)
                threading.Thread(target=agents[uuid].run, daemon=True).start()
        time.sleep(POLL)


if __name__ == '__main__':
    main()
