"""The default account of smalt and Azurite, and how to sign its requests."""

import base64
import hashlib
import hmac
import urllib.parse

ACCOUNT = "devstoreaccount1"
# The key is public.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "2021-12-02"


def signed(text, key=KEY):
    digest = hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)
    return base64.b64encode(digest).decode()


def account_sas(expiry="2099-12-31T23:59:59Z", account=ACCOUNT, key=KEY):
    """Returns the query of a SAS with all permissions. "Create an account SAS"."""
    fields = dict(
        sp="rwdlacupitfx", ss="bqt", srt="sco", st="", se=expiry, sip="", spr="", sv=VERSION, ses=""
    )
    signature = signed("\n".join([account, *fields.values(), ""]), key)
    given = {name: value for name, value in fields.items() if value}
    return urllib.parse.urlencode({**given, "sig": signature})


def shared_key(method, target, headers, service="blob", account=ACCOUNT, key=KEY):
    """Returns the `Authorization` header of a request. Names in `headers` must be in lower case."""
    path, _, query = target.partition("?")
    query = urllib.parse.parse_qsl(query, keep_blank_values=True)
    resource = f"/{account}{path}"
    kind = headers.get("content-type", "")
    if service == "table":
        comp = dict(query).get("comp")
        end = f"?comp={comp}" if comp else ""
        text = f"{method}\n\n{kind}\n{headers['x-ms-date']}\n{resource}{end}"
    else:
        named = sorted(pair for pair in headers.items() if pair[0].startswith("x-ms-"))
        named = "".join(f"{name}:{value}\n" for name, value in named)
        parameters = "".join(f"\n{name.lower()}:{value}" for name, value in sorted(query))
        length = headers.get("content-length", "0")
        length = "" if length == "0" else length
        text = f"{method}\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\n{named}{resource}{parameters}"
    return f"SharedKey {account}:{signed(text, key)}"
