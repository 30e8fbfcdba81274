"""A certificate made by openssl, a server that shows it over loopback, and clients that trust it or don't."""

import http.client
import http.server
import ssl
import subprocess
import threading

subprocess.run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost"
               " -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem", shell=True, check=True, capture_output=True)


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello over " + self.connection.version().encode())

    def log_message(self, *_):
        pass


def get(context):
    connection = http.client.HTTPSConnection("localhost", server.server_port, context=context, timeout=10)
    connection.request("GET", "/")
    return connection.getresponse().read().decode()


server = http.server.ThreadingHTTPServer(("localhost", 0), Hello)
serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
serving.load_cert_chain("cert.pem", "key.pem")
server.socket = serving.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
answer = get(ssl.create_default_context(cafile="cert.pem"))
try:
    refused = get(ssl.create_default_context())
except ssl.SSLCertVerificationError as error:
    refused = error.verify_message
server.shutdown()
print(answer, "-", refused, "-", len(ssl.create_default_context().get_ca_certs()) > 50)
