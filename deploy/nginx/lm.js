// Routing key of a request: equal for the requests of a conversation, so that they reach the replica that has its beginning cached.
import crypto from 'crypto';

// `X-Session-ID`, `prompt_cache_key`, the beginning of the conversation, or the client's address: the first that there is.
function conversation(r) {
    const session = r.headersIn['X-Session-ID'];
    if (session) {
        return session;
    }
    try {
        const body = JSON.parse(r.requestText);
        return String(body.prompt_cache_key || digest(beginning(body)));
    } catch (e) {
        // No body, none of JSON, or one that is in a file.
        return r.remoteAddress;
    }
}

// All up to the first message of the user, which the later requests of the conversation repeat.
function beginning(body) {
    const turns = body.messages || body.input || body.prompt;
    const first = Array.isArray(turns) ? turns.findIndex((turn) => turn.role === 'user') : -1;
    return JSON.stringify([body.system, body.instructions, first < 0 ? turns : turns.slice(0, first + 1)]);
}

function digest(text) {
    return crypto.createHash('sha1').update(text).digest('hex');
}

export default { conversation };
