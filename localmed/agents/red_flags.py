from localmed.clinical.red_flags import red_flags as _r
class _F:
    def __init__(self,n): self.name=n
def red_flags(t): return tuple(_F(n) for n in _r(t))
