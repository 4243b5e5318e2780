"""Other programs' protocols, over the studio's services, and what they share: nothing in the studio names them."""
