//! Codes from BP1001 to BP1099: the scheduler's API, and those who ask it.

macro_rules! api {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    1001 NotAuthenticated "a request without a known token"
        "A request to the scheduler's API needs a token in the header `Authorization: Bearer TOKEN`, unless it comes over the \
         scheduler's unix socket from the user that the scheduler runs as. The token is missing, misspelt, expired, or was \
         removed. `blueproof-scheduler token create` makes a new one."
    1002 RoleTooLow "a token whose role is not sufficient"
        "A token has one of the roles read, run, approve and admin; each includes the rights of the roles before it. The \
         request needs a higher role. Use another token, or have one made with `blueproof-scheduler token create`."
    1003 RequestMalformed "a request that the API does not understand"
        "A parameter or the body of the request does not match the API's description (`/openapi.json`). The message names the \
         part that does not."
    1004 NotFound "something that is not there"
        "The API has no such path, run, attempt, command or file, or its retention has removed it."
    1005 ServerNotReached "a server that does not answer"
        "The server at the address of `--server` or of the current context was not reached, or did not answer in time as \
         blueproof-scheduler does. The result of a request that was under way is unknown. It is safe to send it again with \
         the same key: the scheduler carries it out once."
    1006 TokensUnreadable "a file of tokens that cannot be used"
        "The file of tokens does not exist, cannot be read, can be read by other users, or has other content. Until it is \
         repaired the API accepts no token."
    1007 NotServing "a scheduler that cannot decide"
        "The scheduler follows another one, or cannot write its store. The reason is shown below. The scheduler resumes by \
         itself once the reason is gone."
    1008 ListensForAll "an address that other machines reach"
        "The API uses no TLS, so tokens and outputs could be read on the network. Let the API listen on a unix socket or on a \
         loopback address, behind a proxy with TLS."
    1009 TooManyRequests "a token with too many requests at a time"
        "So that no user keeps the others out, the requests of one token that are answered at a time are limited; a follower of a \
         log counts until it disconnects. Nothing was stored. The same request succeeds once another one has ended."
    }};
}
